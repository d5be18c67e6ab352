#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/attr.h"
#include "tandem/core/cancellation.h"
#include "tandem/device/task_stream.h"
#include "tandem/graph/kernel_context.h"
#include "tandem/graph/op_def.h"
#include "tandem/runtime/eager/device_call_plan.h"
#include "tandem/runtime/eager/pending_call.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {

class Device;
class Runtime;

/// An eager call on its way to a device. Its caller has it, and from `enqueue` on the device's
/// stream too; when both have let go of it, it is cleared and waits for the next call
/// (DeviceLaunches), so that its lists need no memory again.
class DeviceLaunch final : private StreamTask {
 public:
  /// If the call is like one that the calling thread has enqueued before, and its inputs lie on the
  /// device: enqueues it in the same way, and describes it to the kernel only on the stream's
  /// thread. Else undefined, with nothing done. For ops with one output.
  static Tensor repeat(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs,
                       const AttrMap& attrs);
  /// Runs the call, or enqueues it.
  static std::vector<Tensor> run(Runtime& runtime, const OpDef& op, std::span<const Tensor> inputs,
                                 const AttrMap& attrs);

  DeviceLaunch() = default;
  DeviceLaunch(const DeviceLaunch&) = delete;
  DeviceLaunch& operator=(const DeviceLaunch&) = delete;

 private:
  struct Release {
    void operator()(DeviceLaunch* launch) const noexcept { launch->release(); }
  };
  using Share = std::unique_ptr<DeviceLaunch, Release>;

  static Ref<PendingCall> pending_call_of(const Tensor& t);
  static Share begin(Runtime& runtime, std::shared_ptr<const DeviceCallPlan> plan,
                     std::span<const Tensor> inputs, const AttrMap& attrs);
  std::vector<Tensor> start();
  void gather_inputs();
  bool stays_here(const Array& a) const;
  Array on_device(std::size_t i);
  Array host_read(const Array& a) const;
  void add_need(Ref<PendingCall> before);
  Array allocate(DType dtype, const Shape& shape);
  void fill_context();
  Array allocate_result(std::size_t i);
  Tensor promise();
  void enqueue_call(const Ref<PendingCall>& call);
  void find_needs();
  void describe();
  void run_here();
  bool only_forwards() const;
  std::vector<Tensor> enqueue();
  void complete_plan();
  void make_results();
  void run() override;
  void done(std::exception_ptr error) noexcept override;
  [[noreturn]] void fail(const std::exception_ptr& error);
  void keep_promise();
  std::vector<Tensor> outputs(const Ref<Event>& pending) const;
  void release() noexcept;
  void clear() noexcept;

  const OpDef& op() const { return *plan_->op; }
  Device& device() const { return *plan_->device; }

  std::atomic<int> owners_{0};
  bool described_ = true;       // arrays_, results_, context_ and thread_ are filled in
  Runtime* runtime_ = nullptr;  // on the device's thread only while `calls_` are in use
  std::shared_ptr<PendingCalls> calls_;
  const AttrMap* given_ = nullptr;  // while the caller waits
  std::vector<Tensor> inputs_;
  std::shared_ptr<const DeviceCallPlan> plan_;

  std::vector<Array> arrays_;  // as the kernel sees them
  std::vector<Array> results_;
  std::vector<Array> promised_;         // given to the caller before the kernel ran
  bool failed_ = false;                 // on the stream, with an error that says where
  std::array<Array*, 8> few_pointers_;  // to inputs, then results, where they are no more
  std::vector<Array*> many_pointers_;
  Runtime* thread_runtime_ = nullptr;  // the calling thread's, until it is described
  ThreadContext thread_;
  std::shared_ptr<NodeState> state_;
  KernelContext context_;
  std::shared_ptr<const Cancellation> cancellation_;  // of the calling thread; may be null
  StepContext step_;
  PendingCallList needs_;  // calls and copies whose results the inputs are
  Ref<PendingCall> call_;
};

/// Launches that are over. Thread-safe.
class DeviceLaunches {
 public:
  /// One of them, or a new one.
  std::unique_ptr<DeviceLaunch> take();
  /// A launch that was cleared.
  void give(std::unique_ptr<DeviceLaunch> launch) noexcept;

 private:
  static constexpr std::size_t kMax = 1024;
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceLaunch>> launches_;
};

}  // namespace tandem
