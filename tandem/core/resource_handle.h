#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/ref.h"
#include "tandem/core/shape.h"

namespace tandem {

/// Something with state that kernels share: a variable, table, queue or iterator.
class TANDEM_EXPORT Resource : public RefCounted {
 public:
  virtual std::string debug_string() const = 0;
  ~Resource() override;
  /// The session that the resource belongs to has ended: handles of it are of no use any more.
  /// Thread-safe.
  void retire() { retired_.store(true, std::memory_order_release); }
  bool retired() const { return retired_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> retired_{false};
};

/// What a handle says of its resource: where it lives, what it is called, and the values it holds.
struct ResourceInfo {
  std::string device;
  std::string container;
  std::string name;
  std::string type;  ///< kind of resource, such as "Var"
  DType dtype = DType::kInvalid;
  PartialShape shape;
};

/// The element type of DType::kResource: a small host value that names a resource and keeps it
/// alive.
class TANDEM_EXPORT ResourceHandle {
 public:
  ResourceHandle() = default;
  ResourceHandle(std::shared_ptr<const ResourceInfo> info, Ref<Resource> resource)
      : info_(std::move(info)), resource_(std::move(resource)) {}
  bool empty() const { return info_ == nullptr; }
  const ResourceInfo& info() const;
  Resource* resource() const { return resource_.get(); }
  /// Throws FailedPreconditionError if the session of the resource has ended.
  void check_alive() const {
    if (resource_ && resource_->retired()) throw_retired();
  }

 private:
  [[noreturn]] void throw_retired() const;
  std::shared_ptr<const ResourceInfo> info_;
  Ref<Resource> resource_;
};

}  // namespace tandem
