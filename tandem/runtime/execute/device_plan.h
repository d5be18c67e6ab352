#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tandem/placement/task_graph.h"
#include "tandem/runtime/execute/executable.h"
#include "tandem/runtime/execute/pieces.h"
#include "tandem/runtime/execute/placed_function.h"
#include "tandem/runtime/execute/plan.h"

namespace tandem {

class Runtime;

/// How a function runs that is placed on several devices, or on one other than the first CPU:
/// every step is a task on a lane of its device, copies between memories among them. A call issues
/// tasks to the devices' streams in the order of the longest remaining path (ListScheduler) and
/// waits for all; steps of CPUs, and those that work on host memory alone, run on the calling
/// thread and the inter-op pool. Results stay where they are made. Thread-safe.
class DevicePlan final : public Executable {
 public:
  DevicePlan(Runtime& runtime, std::shared_ptr<const PlacedFunction> placed,
             std::shared_ptr<NodeStates> states);
  ~DevicePlan() override;

  std::vector<Array> run(std::vector<Array> args, const StepContext& within) override;
  void run_async(std::vector<Array> args, const StepContext& within,
                 FunctionRunner::Done done) override;
  const Plan* next_plan() override { return &plan_; }
  std::size_t idle_bytes() const override { return plan_.idle_bytes(); }
  std::size_t plan_bytes() const override { return plan_.plan_bytes(); }
  void free_idle_memory() override { plan_.free_idle_frames(); }

  const PlacedFunction& placed() const { return *placed_; }
  const Plan& plan() const { return plan_; }
  /// What a call does: a task for each step, and one behind them for each constant that is to be
  /// uploaded first.
  struct Schedule {
    TaskGraph tasks;
    std::vector<double> priority;
    std::optional<Pieces> single;  ///< there, once it is made
    std::optional<Pieces> joined;  ///< where a device runs segments
  };
  /// That of calls once all constants are where they are wanted.
  const Schedule& schedule() const { return schedule_; }
  /// That of calls before; those after may take it too.
  const Schedule& first_schedule() const { return first_schedule_; }
  Runtime& runtime() const { return runtime_; }
  /// The work of a step that its stream counts.
  double flops(int step) const { return work_[static_cast<std::size_t>(step)].flops; }
  double bytes(int step) const { return work_[static_cast<std::size_t>(step)].bytes; }
  /// Steps that a host thread runs: of CPUs, of host memory alone, and calls of functions, which
  /// give their own steps to the devices.
  bool on_host(int step) const { return on_host_[static_cast<std::size_t>(step)] != 0; }
  /// A copy that may be part of a segment.
  bool is_small_copy(int step) const {
    return step < static_cast<int>(joins_.size()) && joins_[static_cast<std::size_t>(step)] >= 0 &&
           copies_[static_cast<std::size_t>(step)] != 0;
  }

 private:
  struct StepWork {
    double flops = 0;
    double bytes = 0;
  };
  std::unique_ptr<Plan::Frame> frame_for(std::vector<Array> args);
  std::vector<Array> results_of(std::unique_ptr<Plan::Frame> frame);
  void make_tasks();
  void make_first_tasks();
  void find_segments();
  bool joins_segments(int step) const;

  Runtime& runtime_;
  const std::shared_ptr<const PlacedFunction> placed_;
  const std::shared_ptr<NodeStates> states_;
  Plan plan_;
  Schedule schedule_;        // task i is step i
  Schedule first_schedule_;  // empty where no constant has to be uploaded
  std::vector<StepWork> work_;
  std::vector<std::uint8_t> on_host_;
  std::vector<std::uint8_t> copies_;  // by step: 1 for a copy between memories
  std::vector<int> joins_;            // by step, for Pieces::joined; empty: there are no segments
};

}  // namespace tandem
