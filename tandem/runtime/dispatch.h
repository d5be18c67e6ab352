#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/graph/op_decl.h"
#include "tandem/runtime/tensor.h"

namespace tandem {

struct OpDef;

/// The one seam through which every op call goes. Eagerly it runs the op's kernel on the calling
/// thread; while a function is being traced it adds a node to the graph; either way the listening
/// gradient tapes hear of it.
///
/// Attributes that follow from the inputs or have defaults may be left out. An input that the
/// caller moved in, and that nothing else holds, may be overwritten by the result. Throws the
/// kernel's error with op, shapes and dtypes added. Thread-safe.
TANDEM_EXPORT std::vector<Tensor> call(const OpDef& op, std::span<const Tensor> inputs,
                                       const AttrMap& attrs = {});

/// For public op functions: `return call1(kAddV2, {std::move(x), std::move(y)});`
TANDEM_EXPORT Tensor call1(const OpRegistration& op, std::initializer_list<Tensor> inputs,
                           const AttrMap& attrs = {});
TANDEM_EXPORT Tensor call1(const OpRegistration& op, std::span<const Tensor> inputs,
                           const AttrMap& attrs = {});
TANDEM_EXPORT std::vector<Tensor> call(const OpRegistration& op,
                                       std::initializer_list<Tensor> inputs,
                                       const AttrMap& attrs = {});
TANDEM_EXPORT std::vector<Tensor> call(const OpRegistration& op, std::span<const Tensor> inputs,
                                       const AttrMap& attrs = {});

/// Any registered op by its name: `raw_op("AddV2", {x, y})`. Throws NotFoundError for an unknown
/// name.
TANDEM_EXPORT std::vector<Tensor> raw_op(StringView name, std::span<const Tensor> inputs,
                                         const AttrMap& attrs = {});
TANDEM_EXPORT std::vector<Tensor> raw_op(StringView name, std::initializer_list<Tensor> inputs,
                                         const AttrMap& attrs = {});

/// Listens to op calls: what a gradient tape is to the runtime. Used by the thread that registered
/// it, whose list of recorders shares it.
class TANDEM_EXPORT OpRecorder {
 public:
  virtual ~OpRecorder();
  /// Nothing is recorded any more. From any thread: the thread that registered it drops it with its
  /// next call.
  void end() { ended_.store(true, std::memory_order_release); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// True if a call with these inputs is of interest.
  virtual bool wants(std::span<const Tensor> inputs) const = 0;
  virtual void record(const OpDef& op, std::span<const Tensor> inputs, const AttrMap& attrs,
                      std::span<const Tensor> outputs) = 0;
  /// A computation whose gradient the user wrote: `backward` takes the outputs' gradients
  /// (undefined where there is none) and returns the inputs'.
  using Backward = std::function<std::vector<Tensor>(std::span<const Tensor> output_grads)>;
  virtual void record_custom(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                             Backward backward) = 0;

 private:
  std::atomic<bool> ended_{false};
};

/// Notifies the thread's tapes of a computation with a gradient of its own.
TANDEM_EXPORT void record_custom_gradient(std::span<const Tensor> inputs,
                                          std::span<const Tensor> outputs,
                                          const OpRecorder::Backward& backward);

/// True if some tape of this thread would record an op with these inputs.
TANDEM_EXPORT bool is_recording(std::span<const Tensor> inputs);

/// No tape of this thread hears of op calls in the block.
class TANDEM_EXPORT StopRecording {
 public:
  StopRecording();
  ~StopRecording();
  StopRecording(const StopRecording&) = delete;
  StopRecording& operator=(const StopRecording&) = delete;

 private:
  std::vector<std::shared_ptr<OpRecorder>> saved_;
};

}  // namespace tandem
