#include "tandem/kernels/cuda/cudnn/plan_chooser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tandem/device/cuda/internal/room.h"

namespace tandem::cuda {
namespace {

// Engines that are tried: the library has the likely ones in front.
constexpr std::size_t kMaxEngines = 8;
constexpr std::size_t kMaxWorkspace = std::size_t{512} << 20;

bool is_allowed(const std::vector<cudnnBackendNumericalNote_t>& notes, const PlanRequest& request) {
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: return request.exact;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return request.deterministic;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS: return request.exact;
      // Their errors grow with the tile, beyond what float promises.
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return true;
      default: return false;
    }
  });
}

}  // namespace

PlanChooser::PlanChooser(Gpu& gpu) : tuner_(gpu, "cuDNN " + cudnn().version()) {
  with_room([&] { check(cudnn().p_cudnnCreate(&handle_->handle), "cudnnCreate"); });
}

void PlanChooser::add_engines(const OperationGraph& graph, const PlanRequest& request,
                              cudnnBackendHeurMode_t mode, std::vector<Engine>& engines) const {
  constexpr std::size_t kMaxConfigs = 16;
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.descriptor())
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (!heuristics.finalize_if_supported()) return;
  std::vector<Descriptor> configs;
  for (std::size_t i = 0; i < kMaxConfigs; ++i)
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const std::size_t count = heuristics.get_all(CUDNN_ATTR_ENGINEHEUR_RESULTS, configs);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Descriptor> engine;
    engine.emplace_back(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    configs[i].get_all(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (!is_allowed(engine.front().get_notes(), request)) continue;
    engines.push_back(
        {std::move(configs[i]),
         "engine " + std::to_string(engine.front().get_int(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)) +
             " place " + std::to_string(i) + (mode == CUDNN_HEUR_MODE_A ? "" : " fallback")});
  }
}

// Null if the engine turns out not to support it, or wants too much memory.
PlanChooser::Plan PlanChooser::finalized(const std::shared_ptr<const OperationGraph>& graph,
                                         Engine& engine) const {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle_->handle)
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config);
  if (!plan.finalize_if_supported()) return nullptr;
  auto made =
      std::make_shared<const GraphPlan>(handle_, graph, std::move(engine.config), std::move(plan));
  return made->workspace_bytes() <= kMaxWorkspace ? made : nullptr;
}

std::shared_ptr<const GraphPlan> PlanChooser::choose(
    const KernelCall& call, const std::shared_ptr<const OperationGraph>& graph,
    const PlanRequest& request, const std::function<GraphOperands()>& trial) {
  if (!graph->supported()) return nullptr;
  const bool measures = tuner_.enabled() && !request.deterministic;
  const std::optional<std::string> kept = measures ? tuner_.known(request.text) : std::nullopt;
  std::vector<Plan> plans;
  std::vector<std::string> names;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<Engine> engines;
    add_engines(*graph, request, mode, engines);
    if (kept) {
      const auto found = std::find_if(engines.begin(), engines.end(),
                                      [&](const Engine& e) { return e.name == *kept; });
      if (found != engines.end()) {
        if (Plan again = finalized(graph, *found)) return again;
        engines.erase(found);
      }
    }
    for (Engine& engine : engines) {
      if (plans.size() == (measures ? kMaxEngines : 1)) break;
      if (Plan one = finalized(graph, engine)) {
        plans.push_back(std::move(one));
        names.push_back(engine.name);
      }
    }
    if (!plans.empty()) break;
  }
  if (plans.empty()) return nullptr;
  return plans[measures ? fastest(call, request, plans, names, trial()) : 0];
}

std::size_t PlanChooser::fastest(const KernelCall& call, const PlanRequest& request,
                                 const std::vector<Plan>& plans,
                                 const std::vector<std::string>& names, GraphOperands trial) {
  std::size_t workspace = 0;
  for (const Plan& one : plans) workspace = std::max(workspace, one->workspace_bytes());
  if (workspace != 0) trial.workspace = call.scratch(workspace);
  return tuner_.choose(
      request.text, plans.size(),
      [&](std::size_t i, CUstream stream) { plans[i]->execute(stream, trial); },
      [&](std::size_t i) { return names[i]; });
}

}  // namespace tandem::cuda
