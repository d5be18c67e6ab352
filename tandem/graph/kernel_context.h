#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/attr.h"
#include "tandem/core/cancellation.h"
#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/device/device.h"
#include "tandem/device/intra_op_pool.h"
#include "tandem/graph/function.h"
#include "tandem/graph/node_states.h"
#include "tandem/graph/op_def.h"
#include "tandem/graph/rendezvous_key.h"
#include "tandem/graph/step_context.h"

namespace tandem {

class KernelContext;
class Rendezvous;
class ResourceManager;

/// Runs functions for kernels of call, If and While nodes. Implemented by runtime.
class TANDEM_EXPORT FunctionRunner {
 public:
  virtual ~FunctionRunner();
  /// Runs `function` on the caller's device and thread; returns its results. Failures are thrown.
  virtual std::vector<Array> run(const Function& function, std::vector<Array> args,
                                 KernelContext& caller) = 0;
  /// The same without a thread that waits: calls `done` exactly once, from any thread, perhaps
  /// before it returns, with the failure or the results. `function` and `caller` stay valid until
  /// then. Throws nothing.
  using Done = std::function<void(std::exception_ptr, std::vector<Array>)>;
  virtual void run_async(const Function& function, std::vector<Array> args, KernelContext& caller,
                         Done done) = 0;
  /// A copy of `value` in host memory, made without a thread that waits; what lies there already
  /// is handed to `done` as it is. Throws nothing.
  using CopyDone = std::function<void(std::exception_ptr, Array)>;
  virtual void copy_to_host_async(Array value, CopyDone done) = 0;
};

/// What all kernels on one device share. Outlives every context that refers to it.
struct KernelServices {
  Device* device = nullptr;
  Allocator* allocator = nullptr;
  IntraOpPool* intra_op = nullptr;
  ResourceManager* resources = nullptr;
  FunctionRunner* functions = nullptr;
  const std::atomic<bool>* deterministic = nullptr;  ///< op determinism asked for
};

/// One execution of one kernel: its inputs, outputs, attributes and services. Used by one thread at
/// a time.
///
/// Inputs are host arrays (or the device's, as its kernels see them: `kernel_view`) that need not
/// be aligned to more than their element. Kernels check what shape functions could not know, throw
/// InvalidArgumentError with a plain message (op, node and shapes are added outside), and set every
/// output exactly once.
class TANDEM_EXPORT KernelContext {
 public:
  const OpDef& op() const { return *op_; }
  /// The node's name in its graph; the op's name for an eager call.
  std::string_view node_name() const { return node_name_; }

  int num_inputs() const { return num_inputs_; }
  const Array& input(int i) const { return *inputs_[i]; }
  int num_outputs() const { return num_outputs_; }
  DType output_dtype(int i) const { return output_dtypes_[i]; }

  /// Memory for output i, uninitialised (objects default-constructed). May be planned memory, or an
  /// input's where the op says that it may be reused: kernels of such ops must take an output that
  /// starts where the input does.
  Array& allocate_output(int i, const Shape& shape) {
    if (has_bit(planned_outputs_, i) && outputs_[i]->shape() == shape) {
      mark_set(i);
      return *outputs_[i];
    }
    return allocate_output_slow(i, shape);
  }
  /// Like allocate_output, but takes over input `in`'s memory if nothing else needs it and the
  /// sizes agree.
  Array& reuse_or_allocate_output(int in, int i, const Shape& shape);
  /// Forwards an existing array (its buffer is shared).
  void set_output(int i, Array value);
  Array& output(int i) { return *outputs_[i]; }
  /// Scratch memory that lives as long as the returned Array.
  Array allocate_temp(DType dtype, const Shape& shape) const;
  /// True if this execution alone holds input i's memory, so the kernel may overwrite it.
  bool may_overwrite_input(int i) const {
    return has_bit(owned_inputs_, i) && inputs_[i]->writable_in_place();
  }

  /// Attribute by name: as given, or its default. T: std::int64_t, float, bool, std::string, DType,
  /// PartialShape, FunctionRef, std::shared_ptr<const Array> or a vector. Throws InternalError if
  /// there is none of that type.
  template <class T>
  const T& attr(std::string_view name) const {
    const AttrValue* value = attrs_->find(name);
    if (!value) value = default_attr(name);
    const T* typed = value ? value->get_if<T>() : nullptr;
    if (!typed) throw_missing_attr(name);
    return *typed;
  }
  /// Null if neither given nor defaulted.
  const AttrValue* find_attr(std::string_view name) const {
    const AttrValue* value = attrs_->find(name);
    return value ? value : default_attr(name);
  }
  /// A type attribute, also where it follows from the inputs.
  DType type_attr(std::string_view name) const;
  const AttrMap& given_attrs() const { return *attrs_; }

  IntraOpPool& intra_op() const { return *services_->intra_op; }
  Device& device() const { return *services_->device; }
  ResourceManager& resources() const { return *services_->resources; }
  FunctionRunner& functions() const { return *services_->functions; }
  const KernelServices& services() const { return *services_; }
  /// Results must have the same bits whatever the number of threads.
  bool deterministic() const { return services_->deterministic->load(std::memory_order_relaxed); }
  /// Only for ops with the trait `keeps_state`.
  NodeState& state() const { return *state_; }
  /// The step that the kernel runs in; null for an eager call that nothing may stop.
  const StepContext* step() const { return step_; }
  /// May be null.
  const Cancellation* cancellation() const { return step_ ? step_->cancellation : nullptr; }

  /// May be null.
  Rendezvous* rendezvous() const { return step_ ? step_->rendezvous : nullptr; }

  // For sends and receives (`is_transfer`) alone:
  /// The iteration of a loop that this execution belongs to.
  const FrameIteration& frame_iteration() const { return frame_iteration_; }
  /// An input is dead, so input 0 may be empty.
  bool input_dead() const { return input_dead_; }
  /// All outputs are dead: none need be set. Throws InternalError in a graph that was planned for
  /// live values alone.
  void set_outputs_dead();

  // ---- For the runtime, which fills contexts in. ----
  void set_num_outputs(int n) {
    num_outputs_ = n;
    all_outputs_ = n < 64 ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0};
  }
  /// Before and after a kernel: throws InternalError, naming `kernel`, if it left an output unset
  /// or set one of another dtype or shape than declared. `run_kernel` (kernel.h) does both.
  void begin_outputs() { set_outputs_ = 0; }
  void check_outputs(const char* kernel) const {
    if (set_outputs_ != all_outputs_) [[unlikely]]
      check_outputs_slow(kernel);
  }
  const OpDef* op_ = nullptr;
  const AttrMap* attrs_ = nullptr;
  std::string_view node_name_;
  const Array* const* inputs_ = nullptr;
  Array* const* outputs_ = nullptr;
  const DType* output_dtypes_ = nullptr;
  int num_inputs_ = 0;
  int num_outputs_ = 0;
  std::uint64_t planned_outputs_ =
      0;  ///< outputs whose array is already there for the planned shape
  std::uint64_t offered_outputs_ = 0;  ///< those of them that may as well be made elsewhere
  std::uint64_t owned_inputs_ = 0;     ///< inputs that nothing reads after this execution
  std::uint32_t host_outputs_ = 0;     ///< outputs made in host memory, whatever the device
  const KernelServices* services_ = nullptr;
  NodeState* state_ = nullptr;
  const StepContext* step_ = nullptr;
  FrameIteration frame_iteration_;
  bool input_dead_ = false;
  bool may_be_dead_ = false;   ///< the executor handles dead values
  bool outputs_dead_ = false;  ///< the kernel has said so

 private:
  // In lists longer than the masks, the rest is neither planned nor owned.
  static bool has_bit(std::uint64_t mask, int i) { return i < 64 && ((mask >> i) & 1) != 0; }
  void mark_set(int i) {
    if (i < 64) set_outputs_ |= std::uint64_t{1} << i;
  }
  void forget_plan(int i) {
    if (i < 64) planned_outputs_ &= ~(std::uint64_t{1} << i);
  }
  Array& allocate_output_slow(int i, const Shape& shape);
  void check_outputs_slow(const char* kernel) const;
  Array allocate_on_device(DType dtype, const Shape& shape) const;
  const AttrValue* default_attr(std::string_view name) const;
  [[noreturn]] void throw_missing_attr(std::string_view name) const;

  std::uint64_t set_outputs_ = 0;  ///< of this run, each as declared
  std::uint64_t all_outputs_ = 0;
  std::shared_ptr<const std::string> wrong_output_;  ///< how an output differs from its declaration
};

}  // namespace tandem
