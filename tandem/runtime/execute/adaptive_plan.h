#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tandem/runtime/execute/executable.h"
#include "tandem/runtime/execute/plan.h"
#include "tandem/runtime/execute/sequential.h"

namespace tandem {

/// The plan of a function for given shapes, or for all that differ in some sizes, and the choice of
/// its schedule: sequential, until one measured run shows that running independent steps side by
/// side could pay and trial runs confirm it. Plans with steps that may wait are dataflow plans from
/// the start. Thread-safe.
class AdaptivePlan final : public Executable {
 public:
  AdaptivePlan(Runtime& runtime, std::shared_ptr<const MutableFunction> function,
               ArgShapes arg_shapes, std::shared_ptr<NodeStates> states);
  ~AdaptivePlan() override;

  std::vector<Array> run(std::vector<Array> args, const StepContext& within) override;
  std::vector<Array> run_into(std::vector<Array> args, std::span<const Array> places,
                              const StepContext& within) override;
  void run_between(std::span<Array> args, std::span<const Array> places, std::span<Array> results,
                   const StepContext& within) override;
  void run_async(std::vector<Array> args, const StepContext& within,
                 FunctionRunner::Done done) override;
  const Plan* next_plan() override;
  std::size_t idle_bytes() const override;
  std::size_t plan_bytes() const override;
  void free_idle_memory() override;

 private:
  std::vector<Array> run_plan(Plan& plan, std::vector<Array> args, const StepContext& within,
                              std::vector<StepTime>* times = nullptr,
                              std::span<const Array> places = {});
  static std::unique_ptr<Plan::Frame> frame_for(Plan& plan, std::span<Array> args,
                                                std::span<const Array> places);
  static std::vector<Array> results_of(Plan& plan, std::unique_ptr<Plan::Frame> frame,
                                       std::span<const Array> places);
  Plan& for_this_thread(Plan& plan) const;
  std::unique_ptr<Plan::Frame> run_frame(Plan& plan, std::span<Array> args,
                                         const StepContext& within, std::vector<StepTime>* times,
                                         std::span<const Array> places);
  std::vector<Array> run_adapting(std::vector<Array> args, const StepContext& within);
  Plan& on_trial() const;
  bool may_gain(const std::vector<StepTime>& times) const;
  double work_of(std::span<const Array> args) const;

  Runtime& runtime_;
  const std::shared_ptr<const MutableFunction> function_;
  const ArgShapes arg_shapes_;
  const std::shared_ptr<NodeStates> states_;
  std::unique_ptr<Plan> sequential_;
  std::unique_ptr<Plan> dataflow_;
  std::atomic<Plan*> second_{nullptr};  // dataflow_, for those without the mutex
  std::atomic<Plan*> chosen_{nullptr};  // set once decided

  std::mutex mutex_;  // guards the below, which only undecided plans use
  int runs_ = 0;
  double best_sequential_ = 0;
  double best_dataflow_ = 0;
};

}  // namespace tandem
