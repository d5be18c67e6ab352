#include "tandem/kernels/cuda/cudnn/convolution_planner.h"

#include <algorithm>

#include "tandem/kernels/cuda/support/types.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t kMaxPlans = 4096;
// Engines that are tried: the library has the likely ones in front.
constexpr std::size_t kMaxEngines = 8;
constexpr std::size_t kMaxWorkspace = std::size_t{512} << 20;

bool is_allowed(const std::vector<cudnnBackendNumericalNote_t>& notes,
                const ConvolutionProblem& problem) {
  const bool exact = problem.type == Type::kFloat && !problem.tensor_float_32;
  return std::none_of(notes.begin(), notes.end(), [&](cudnnBackendNumericalNote_t note) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: return exact;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return problem.deterministic;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS: return exact;
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

ConvolutionPlanner::ConvolutionPlanner(Gpu& gpu) : tuner_(gpu, "cuDNN " + cudnn().version()) {
  check(cudnn().p_cudnnCreate(&handle_->handle), "cudnnCreate");
}

ConvolutionPlanner::Plan ConvolutionPlanner::plan(const KernelCall& call,
                                                  const ConvolutionProblem& problem,
                                                  const ConvolutionAddresses& at) {
  {
    std::lock_guard lock(mutex_);
    const auto found = plans_.find(problem);
    if (found != plans_.end()) return found->second;
  }
  // Another thread may make the same: what is there first stays.
  Plan made = make(call, problem, at);
  std::lock_guard lock(mutex_);
  if (plans_.size() >= kMaxPlans) plans_.clear();
  return plans_.try_emplace(problem, std::move(made)).first->second;
}

void ConvolutionPlanner::add_engines(const ConvolutionGraph& graph,
                                     const ConvolutionProblem& problem, cudnnBackendHeurMode_t mode,
                                     std::vector<Engine>& engines) const {
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
    if (!is_allowed(engine.front().get_notes(), problem)) continue;
    engines.push_back(
        {std::move(configs[i]),
         "engine " + std::to_string(engine.front().get_int(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)) +
             " place " + std::to_string(i) + (mode == CUDNN_HEUR_MODE_A ? "" : " fallback")});
  }
}

// Null if the engine turns out not to support it, or wants too much memory.
ConvolutionPlanner::Plan ConvolutionPlanner::finalized(
    std::shared_ptr<const ConvolutionGraph> graph, const ConvolutionProblem& problem,
    Engine& engine) const {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle_->handle)
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.config);
  if (!plan.finalize_if_supported()) return nullptr;
  auto made = std::make_shared<const ConvolutionPlan>(
      handle_, std::move(graph), std::move(engine.config), std::move(plan), problem);
  return made->workspace_bytes() <= kMaxWorkspace ? made : nullptr;
}

ConvolutionPlanner::Plan ConvolutionPlanner::make(const KernelCall& call,
                                                  const ConvolutionProblem& problem,
                                                  const ConvolutionAddresses& at) {
  const auto graph = std::make_shared<const ConvolutionGraph>(handle_->handle, problem);
  if (!graph->supported()) return nullptr;
  const bool measures = tuner_.enabled() && !problem.deterministic;
  const std::optional<std::string> kept = measures ? tuner_.known(problem.text()) : std::nullopt;
  std::vector<Plan> plans;
  std::vector<std::string> names;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    std::vector<Engine> engines;
    add_engines(*graph, problem, mode, engines);
    if (kept) {
      const auto found = std::find_if(engines.begin(), engines.end(),
                                      [&](const Engine& e) { return e.name == *kept; });
      if (found != engines.end()) {
        if (Plan again = finalized(graph, problem, *found)) return again;
        engines.erase(found);
      }
    }
    for (Engine& engine : engines) {
      if (plans.size() == (measures ? kMaxEngines : 1)) break;
      if (Plan one = finalized(graph, problem, engine)) {
        plans.push_back(std::move(one));
        names.push_back(engine.name);
      }
    }
    if (!plans.empty()) break;
  }
  if (plans.empty()) return nullptr;
  return plans[measures ? fastest(call, problem, plans, names, at) : 0];
}

// The addend may be the result's memory, which is then not to be written before the result is
// wanted.
std::size_t ConvolutionPlanner::fastest(const KernelCall& call, const ConvolutionProblem& problem,
                                        const std::vector<Plan>& plans,
                                        const std::vector<std::string>& names,
                                        const ConvolutionAddresses& at) {
  ConvolutionAddresses trial = at;
  std::size_t workspace = 0;
  for (const Plan& one : plans) workspace = std::max(workspace, one->workspace_bytes());
  if (workspace != 0) trial.workspace = call.scratch(workspace);
  if (problem.has_addend) {
    trial.y = call.scratch(static_cast<std::size_t>(problem.batch * problem.out * problem.y[0] *
                                                    problem.y[1] * problem.y[2]) *
                           size_of(problem.type));
  }
  return tuner_.choose(
      problem.text(), plans.size(),
      [&](std::size_t i, CUstream stream) { plans[i]->execute(stream, trial); },
      [&](std::size_t i) { return names[i]; });
}

}  // namespace tandem::cuda
