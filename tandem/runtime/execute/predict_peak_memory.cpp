#include "tandem/runtime/predict_peak_memory.h"

#include "tandem/core/error.h"
#include "tandem/runtime/eager/eager_choice.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/execute/function_executor.h"
#include "tandem/runtime/execute/memory_simulation.h"
#include "tandem/runtime/runtime.h"
#include "tandem/runtime/tensor_impl.h"

namespace tandem::config {
namespace {

// `outlines`: the arguments have only the shapes of the call's.
std::vector<DevicePeak> peaks_of(const ConcreteFunction& function, std::span<const Tensor> args,
                                 bool outlines) {
  if (!function.function()) throw InvalidArgumentError("An empty function has no memory peak.");
  const auto& params = function.function()->args();
  if (args.size() + function.captures().size() != params.size()) {
    throw InvalidArgumentError(cat("Function '", function.name(), "' takes ",
                                   params.size() - function.captures().size(),
                                   " arguments but got ", args.size(), "."));
  }
  std::vector<Array> arrays;
  for (const Tensor& t : args) {
    t.synchronize();
    arrays.push_back(t.impl()->array);
  }
  for (const Tensor& t : function.captures()) {
    t.synchronize();
    arrays.push_back(t.impl()->array);
  }
  FunctionExecutor::check(*function.function(), arrays);
  Runtime& runtime = Runtime::current();
  const std::vector<std::size_t> added =
      simulate_memory(*function.function(), arrays, outlines ? args.size() : 0,
                      device_of_call(runtime, function.name()));
  std::vector<DevicePeak> peaks;
  for (std::size_t d = 0; d < runtime.devices().size(); ++d) {
    Device& device = *runtime.devices()[d];
    if (!device.lost().empty()) continue;
    settle(device);
    peaks.push_back({device.name(), device.allocator().stats().current + added[d]});
  }
  return peaks;
}

}  // namespace

std::vector<DevicePeak> predict_peak_memory(const ConcreteFunction& function,
                                            std::span<const Tensor> args) {
  return peaks_of(function, args, /*outlines=*/false);
}

std::vector<DevicePeak> predict_peak_memory(const ConcreteFunction& function,
                                            std::initializer_list<Tensor> args) {
  return predict_peak_memory(function, std::span<const Tensor>(args.begin(), args.size()));
}

std::vector<DevicePeak> predict_peak_memory(const ConcreteFunction& function) {
  std::vector<Tensor> args;
  if (function.function()) {
    const std::vector<Node*>& params = function.function()->args();
    for (std::size_t i = 0; i + function.captures().size() < params.size(); ++i) {
      const PartialShape& shape = params[i]->output_shape(0);
      if (!shape.is_fully_known()) {
        throw InvalidArgumentError(
            cat("Argument '", params[i]->name(), "' of function '", function.name(),
                "' has the shape ", shape,
                ", so that its memory is not known. Give the arguments to predict_peak_memory."));
      }
      args.emplace_back(Array(params[i]->output_dtype(0), shape.to_shape()));
    }
  }
  return peaks_of(function, args, /*outlines=*/true);
}

}  // namespace tandem::config
