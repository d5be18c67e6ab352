#include "tandem/runtime/eager/eager.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <optional>

#include "tandem/core/error.h"
#include "tandem/core/flush_denormals.h"
#include "tandem/device/wait_until_done.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_registry.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/eager/device_launch.h"
#include "tandem/runtime/eager/eager_choice.h"
#include "tandem/runtime/eager/eager_devices.h"
#include "tandem/runtime/eager/op_failure.h"
#include "tandem/runtime/execute/device_kernel.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/step_scope.h"
#include "tandem/runtime/execute/undefined_hint.h"
#include "tandem/runtime/profile/step_recorder.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

constexpr std::size_t kFewArguments = 8;

// What the kernel choice of an eager call depends on, in one word where it fits.
struct CallKey {
  std::uint64_t runtime = 0;
  const OpDef* op = nullptr;
  std::uint64_t types = 0;
  bool operator==(const CallKey&) const = default;
};

struct CachedCall {
  CallKey key;
  const KernelList* kernels = nullptr;
  const KernelServices* services = nullptr;
  std::array<DType, 4> output_dtypes{};
  int num_outputs = 0;
  int required_attrs = 0;  ///< that a call must give
};

// Direct-mapped and per thread: a hit costs a few comparisons, a miss the full look-up.
constexpr std::size_t kCacheSize = 512;
CachedCall& cache_slot(const CallKey& key) {
  thread_local std::array<CachedCall, kCacheSize> cache;
  std::uint64_t hash = (reinterpret_cast<std::uintptr_t>(key.op) >> 4) * 0x9e3779b97f4a7c15ull;
  hash ^= (key.types + key.runtime) * 0xc2b2ae3d27d4eb4full;
  return cache[(hash >> 32) % kCacheSize];
}

// False if the call has more dtypes than fit in the key (then nothing is cached).
bool make_key(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs,
              const AttrMap& attrs, CallKey& key) {
  if (!op.plain_arguments || op.outputs.size() > 4) return false;
  key.runtime = runtime.id();
  key.op = &op;
  int bits = 0;
  for (const Tensor& t : inputs) {
    if (bits > 56) return false;
    key.types |= static_cast<std::uint64_t>(t.impl()->array.dtype()) << bits;
    bits += 8;
  }
  for (const auto& [name, value] : attrs) {
    if (const DType* t = value.get_if<DType>()) {
      if (bits > 48) return false;
      key.types |=
          (static_cast<std::uint64_t>(*t) | static_cast<std::uint64_t>(name.front() & 0x7f) << 8)
          << bits;
      bits += 16;
    } else if (value.get_if<std::vector<DType>>()) {
      return false;
    }
  }
  return true;
}

// True if all values lie in the host's memory. Those that are late are waited for on request.
bool check_inputs(std::string_view op, std::span<const Tensor> inputs, bool wait) {
  bool on_host = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      throw InvalidArgumentError(cat("Op ", op, ": input ", i,
                                     " is an undefined tensor. Give it a value first.",
                                     undefined_tensor_hint()));
    }
    const TensorImpl& impl = *inputs[i].impl();
    if (impl.symbolic()) {
      throw FailedPreconditionError(cat("Op ", op, ": input ", i, " ('", impl.symbol().name(),
                                        "') is a symbolic tensor of a function whose "
                                        "tracing is over, or that is traced elsewhere. Use the "
                                        "value that the function returns."));
    }
    if (impl.pending && wait) inputs[i].synchronize();
    on_host = on_host && impl.array.on_host();
  }
  return on_host;
}

// Values of another runtime's devices, for a runtime that has one CPU.
std::vector<Tensor> on_host(std::span<const Tensor> inputs) {
  std::vector<Tensor> copies;
  for (const Tensor& t : inputs)
    copies.push_back(t.impl()->array.on_host() ? t : Tensor(new TensorImpl(t.array())));
  return copies;
}

// References are read where a value is wanted, but only in graphs.
void check_references(const OpDef& op, std::span<const Tensor> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_ref(inputs[i].impl()->array.dtype())) continue;
    const bool by_position = op.plain_arguments && i < op.inputs.size();
    if (by_position ? op.inputs[i].is_ref : op.inputs.back().is_ref) continue;
    throw FailedPreconditionError(cat("Op ", op.name, ": input ", i,
                                      " is a reference to a variable, which has a value only in "
                                      "graphs. Call the op in a td::function."));
  }
}

std::vector<DType> dtypes_of(std::span<const Tensor> inputs) {
  std::vector<DType> types;
  types.reserve(inputs.size());
  for (const Tensor& t : inputs) types.push_back(t.impl()->array.dtype());
  return types;
}

bool is_required(const AttrDef& def) { return !def.inferred && def.default_value.empty(); }

// Whether attributes that are not part of the cache's key are fine; what is not, the full check
// names. Throws for values that are not allowed.
bool check_given(const OpDef& op, const AttrMap& attrs, int required) {
  for (const auto& [name, value] : attrs) {
    const AttrDef* def = op.find_attr(name);
    if (!def && !name.starts_with('_')) return false;
    if (!def) continue;
    check_attr(op, *def, value);
    if (is_required(*def)) --required;
  }
  return required == 0;
}

class EagerCall {
 public:
  EagerCall(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs, const AttrMap& attrs)
      : runtime_(runtime), op_(op), inputs_(inputs), attrs_(attrs) {}

  // False if only another device has a kernel.
  bool prepare() {
    if (!check_inputs(op_.name, inputs_, /*wait=*/true)) {
      copies_ = on_host(inputs_);
      inputs_ = copies_;
    }
    CallKey key;
    if (make_key(runtime_, op_, inputs_, attrs_, key)) {
      CachedCall& slot = cache_slot(key);
      if (!(slot.key == key)) {
        CachedCall fresh = look_up();
        fresh.key = key;
        slot = fresh;
        is_first_ = true;
      } else if (!attrs_.empty() || slot.required_attrs != 0) {
        if (!check_given(op_, attrs_, slot.required_attrs)) look_up();
      }
      found_ = &slot;
      few_dtypes_ = slot.output_dtypes;  // a nested call on this thread may take the slot
      output_dtypes_ = few_dtypes_.data();
      num_outputs_ = slot.num_outputs;
    } else {
      own_ = look_up();
      found_ = &own_;
      output_dtypes_ = many_dtypes_.data();
      num_outputs_ = static_cast<int>(many_dtypes_.size());
    }
    return found_->kernels != nullptr;
  }

  int num_outputs() const { return num_outputs_; }

  // `outputs` are `num_outputs()` pointers.
  void run(Array* const* outputs) {
    std::array<const Array*, kFewArguments> few;
    std::vector<const Array*> many;
    const Array** arrays = few.data();
    if (inputs_.size() > kFewArguments) {
      many.resize(inputs_.size());
      arrays = many.data();
    }
    KernelContext context;
    // A tape keeps the inputs for the gradient: they must stay as they are.
    const ThreadContext& thread = thread_context();
    const bool recorded = !thread.recorders.empty() && is_recording(inputs_);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const TensorImpl* impl = inputs_[i].impl();
      arrays[i] = &impl->array;
      if (!recorded && impl->unique() && i < 64) context.owned_inputs_ |= std::uint64_t{1} << i;
    }
    std::optional<StepContext> step;
    if (thread.cancellation) [[unlikely]]
      context.step_ = &step.emplace(eager_step(thread));
    context.op_ = &op_;
    context.attrs_ = &attrs_;
    context.node_name_ = op_.name;
    context.inputs_ = arrays;
    context.outputs_ = outputs;
    context.output_dtypes_ = output_dtypes_;
    context.num_inputs_ = static_cast<int>(inputs_.size());
    context.set_num_outputs(num_outputs_);
    context.services_ = found_->services;
    std::shared_ptr<NodeState> state;
    if (op_.traits.keeps_state) {
      state = runtime_.eager_state(op_, attrs_);
      context.state_ = state.get();
    }
    const ScopedFlushDenormals flush;
    const KernelDecl& kernel = found_->kernels->choose(context);
    if (StepRecorder::on()) [[unlikely]]
      return run_recorded(kernel, context);
    run(kernel, context);
    if (is_first_) [[unlikely]]
      check_shapes(kernel, context);
  }

 private:
  static void run(const KernelDecl& kernel, KernelContext& context) {
    if (kernel.run) {
      run_kernel(kernel, context);
    } else {
      context.begin_outputs();
      wait_until_done([&](auto done) { kernel.run_async(context, std::move(done)); });
      context.check_outputs(kernel.name);
    }
  }

  // Shapes are inferred once for each kind of call, not each time.
  [[gnu::noinline]] void check_shapes(const KernelDecl& kernel,
                                      const KernelContext& context) const {
    if (op_.traits.kind != NodeKind::kPlain) return;
    std::vector<Array> inputs;
    for (const Tensor& t : inputs_) inputs.push_back(t.impl()->array);
    const CalledNode called(runtime_.ops(), op_, inputs,
                            complete_attrs(op_, dtypes_of(inputs_), attrs_));
    const Node* const node = called.node();
    for (int i = 0; node && i < num_outputs_; ++i) {
      const Array& made = *context.outputs_[i];
      if (is_ref(made.dtype()) || node->output_shape(i).is_compatible(made.shape())) continue;
      throw InternalError(cat("Kernel '", kernel.name, "' of op ", op_.name, ": output ", i,
                              " has shape ", made.shape(), " but was declared as ",
                              node->output_shape(i), "."));
    }
  }

  [[gnu::noinline]] void run_recorded(const KernelDecl& kernel, KernelContext& context) {
    const auto recorder = StepRecorder::active();
    const StepRecorder::Time start = StepRecorder::now();
    run(kernel, context);
    if (!recorder) return;
    recorder->eager(recorder->kernel_track(context.device()), op_.name, start, StepRecorder::now(),
                    StepRecorder::bytes_of(context));
  }

  CachedCall look_up() {
    check_references(op_, inputs_);
    CachedCall entry;
    const AttrMap complete = complete_attrs(op_, dtypes_of(inputs_), attrs_);
    Device& device = runtime_.default_device();
    const KernelRegistry& kernels = runtime_.kernels();
    entry.kernels = runtime_.needs_placement() ? kernels.find(op_, device.kernel_class(), complete)
                                               : &kernels.get(op_, device.kernel_class(), complete);
    entry.services = &runtime_.services(device);
    const std::vector<DType> types = tandem::output_dtypes(op_, complete);
    entry.num_outputs = static_cast<int>(types.size());
    entry.required_attrs =
        static_cast<int>(std::count_if(op_.attrs.begin(), op_.attrs.end(), is_required));
    if (types.size() <= entry.output_dtypes.size())
      std::copy(types.begin(), types.end(), entry.output_dtypes.begin());
    many_dtypes_ = types;
    return entry;
  }

  Runtime& runtime_;
  const OpDef& op_;
  std::span<const Tensor> inputs_;
  std::vector<Tensor> copies_;
  const AttrMap& attrs_;
  const CachedCall* found_ = nullptr;
  CachedCall own_;
  std::array<DType, 4> few_dtypes_{};
  std::vector<DType> many_dtypes_;
  const DType* output_dtypes_ = nullptr;
  int num_outputs_ = 0;
  bool is_first_ = false;  // of this thread's calls of its kind, lately
};

// With one device there is no choice, unless a scope asks for what is not there.
bool is_placed(const Runtime& runtime) {
  return runtime.needs_placement() ||
         (!thread_context().devices.empty() && asks_elsewhere(runtime));
}

std::vector<Tensor> run_on_devices(Runtime& runtime, const OpDef& op,
                                   std::span<const Tensor> inputs, const AttrMap& attrs) {
  check_inputs(op.name, inputs, /*wait=*/false);
  check_references(op, inputs);
  return run_eagerly_on_devices(runtime, op, inputs, attrs);
}

}  // namespace

Tensor run_eagerly_1(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs,
                     const AttrMap& attrs) {
  const auto check_one = [&](std::size_t outputs) {
    if (outputs != 1)
      throw InternalError(cat("op ", op.name, " has ", outputs, " outputs, not one"));
  };
  try {
    if (runtime.needs_placement()) {
      if (Tensor output = DeviceLaunch::repeat(runtime, op, inputs, attrs); output.defined())
        return output;
    }
    if (!is_placed(runtime) || plainly_on_host(runtime, op, inputs)) {
      EagerCall call(runtime, op, inputs, attrs);
      if (call.prepare()) {
        check_one(static_cast<std::size_t>(call.num_outputs()));
        Tensor output(new TensorImpl);
        Array* array = &output.impl()->array;
        call.run(&array);
        return output;
      }
    }
    std::vector<Tensor> outputs = run_on_devices(runtime, op, inputs, attrs);
    check_one(outputs.size());
    return std::move(outputs.front());
  } catch (...) {
    throw_op_failure(op, inputs);
  }
}

std::vector<Tensor> run_eagerly(const OpDef& op, std::span<const Tensor> inputs,
                                const AttrMap& attrs) {
  try {
    Runtime& runtime = Runtime::current();
    if (!is_placed(runtime) || plainly_on_host(runtime, op, inputs)) {
      EagerCall call(runtime, op, inputs, attrs);
      if (call.prepare()) {
        std::vector<Tensor> outputs;
        std::vector<Array*> arrays;
        for (int i = 0; i < call.num_outputs(); ++i) {
          outputs.emplace_back(new TensorImpl);
          arrays.push_back(&outputs.back().impl()->array);
        }
        call.run(arrays.data());
        return outputs;
      }
    }
    return run_on_devices(runtime, op, inputs, attrs);
  } catch (...) {
    throw_op_failure(op, inputs);
  }
}

namespace {

std::vector<Array> arrays_of(std::span<const Tensor> args) {
  std::vector<Array> arrays;
  arrays.reserve(args.size());
  for (const Tensor& t : args) arrays.push_back(t.impl()->array);
  return arrays;
}

// Kept apart from the calls of a runtime with one CPU, which pay nothing for it.
[[gnu::noinline]] std::vector<Tensor> run_function_on_devices(Runtime& runtime,
                                                              const Function& function,
                                                              std::span<const Tensor> args) {
  Device& device = device_of_call(runtime, function.name());
  if (runtime.log_placement())
    std::cerr << cat("Executing op ", function.name(), " in device ", device.name(), "\n");
  std::vector<Tensor> outputs;
  for (Array& r : FunctionExecutor::call(function, arrays_of(args), device))
    outputs.push_back(tensor_on(runtime, std::move(r)));
  return outputs;
}

}  // namespace

std::vector<Tensor> run_function_eagerly(Runtime& runtime, const Function& function,
                                         std::span<const Tensor> args) {
  const bool here = check_inputs(function.name(), args, /*wait=*/true);
  if (runtime.needs_placement()) return run_function_on_devices(runtime, function, args);
  if (is_placed(runtime)) device_of_call(runtime, function.name());
  if (!here) return run_function_eagerly(runtime, function, on_host(args));
  std::vector<Array> results =
      FunctionExecutor::call(function, arrays_of(args), runtime.default_device());
  std::vector<Tensor> outputs;
  outputs.reserve(results.size());
  for (Array& r : results) outputs.emplace_back(new TensorImpl(std::move(r)));
  return outputs;
}

}  // namespace tandem
