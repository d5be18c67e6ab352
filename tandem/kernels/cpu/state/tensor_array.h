#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/resource_handle.h"
#include "tandem/graph/kernel_context.h"

namespace tandem::cpu {

/// The state behind TensorFlow 1's TensorArray: elements that are written once and read, as they
/// come. Lives as long as its handles, which is one run of a graph. Thread-safe.
class TensorArray final : public Resource {
 public:
  struct Options {
    DType dtype = DType::kInvalid;
    PartialShape element_shape;
    bool dynamic_size = false;
    bool clear_after_read = true;
    bool identical_element_shapes = false;
    bool sums_writes = false;  ///< of gradients: an element may be written more than once
  };
  TensorArray(std::string name, std::int64_t size, Options options);

  const std::string& name() const { return name_; }
  DType dtype() const { return options_.dtype; }
  bool dynamic_size() const;
  std::int64_t size() const;
  void write(std::int64_t index, const Array& value);
  /// Zeros for an element that was never written, if its shape is known.
  Array read(std::int64_t index);
  /// Drops everything; any further use is an error.
  void close();
  /// The array of the gradients towards this one's elements for `source`, with `prepend` in front
  /// of the elements' shapes; always the same one. From now on the size is fixed.
  Ref<TensorArray> gradient(const std::string& source, const std::vector<std::int64_t>& prepend);
  std::string debug_string() const override;

 private:
  struct Element {
    Array value;
    PartialShape shape;  // known of one that was not written
    bool written = false, read = false, cleared = false;
  };
  void check_open() const;
  [[noreturn]] void fail(const std::string& what) const;

  const std::string name_;
  mutable std::mutex mutex_;  // guards all below
  Options options_;
  bool closed_ = false;
  std::vector<Element> elements_;
  std::map<std::string, Ref<TensorArray>> gradients_;
};

/// The handle of a resource that nothing can find by name.
Array make_handle(const KernelContext& c, Ref<Resource> resource, const std::string& name,
                  const char* type, DType dtype);

}  // namespace tandem::cpu
