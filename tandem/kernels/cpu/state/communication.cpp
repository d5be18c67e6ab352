// Collectives: nodes of one step that meet and compute together. No thread waits for the others.

#include <limits>
#include <optional>
#include <string>

#include "tandem/core/error.h"
#include "tandem/graph/collectives.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/local_collectives.h"

namespace tandem::cpu {
namespace {

std::int64_t scalar(const KernelContext& c, int input, const char* name) {
  const Array& value = c.input(input);
  if (value.rank() != 0) {
    throw InvalidArgumentError(
        cat("Unexpected dimensions on input ", name, ", got ", value.shape(), '.'));
  }
  return *value.data<std::int32_t>();
}

// Loops may have several iterations on their way.
std::string in_iteration(const KernelContext& c, std::string key) {
  const FrameIteration& at = c.frame_iteration();
  if (at.frame != 0 || at.iteration != 0) key += cat(';', at.frame, ':', at.iteration);
  return key;
}

Collectives::Member member(const KernelContext& c, std::string key, std::int64_t group_size) {
  if (group_size < 1)
    throw InvalidArgumentError(cat("group_size must be positive integer but got ", group_size));
  if (group_size > std::numeric_limits<int>::max())
    throw InvalidArgumentError(cat("A group cannot have ", group_size, " members."));
  const bool on_host = !c.device().memory_space() || (c.host_outputs_ & 1) != 0;
  return {.key = in_iteration(c, std::move(key)),
          .group_size = static_cast<int>(group_size),
          .device = &c.device(),
          .memory = on_host ? nullptr : &c.device(),
          .cancellation = c.cancellation()};
}

// The member of a node whose size and keys are inputs from `first` on, or attributes.
Collectives::Member keyed_member(const KernelContext& c, int first) {
  const auto number = [&](int i, const char* name) {
    return c.find_attr(name) ? c.attr<std::int64_t>(name) : scalar(c, first + i, name);
  };
  const std::int64_t size = number(0, "group_size");
  const std::int64_t group = number(1, "group_key");
  const std::int64_t instance = number(2, "instance_key");
  Collectives::Member made = member(c, cat(group, ':', instance), size);
  made.timeout = std::chrono::duration<double>(c.attr<float>("timeout_seconds"));
  return made;
}

// Has the member take part; a group of one needs no step to meet in.
template <class Join>
void take_part(KernelContext& c, const Collectives::Member& member, Join join) {
  Collectives* const shared = c.step() ? c.step()->collectives : nullptr;
  if (shared) return join(*shared);
  if (member.group_size > 1) {
    throw FailedPreconditionError(
        cat("Collective '", member.key, "' has ", member.group_size,
            " members, which meet within one step: call them in one function, not one by one."));
  }
  LocalCollectives alone;
  join(alone);
}

Collectives::Done finish(KernelContext& c, KernelDone done,
                         std::optional<Shape> expected = std::nullopt) {
  return [&c, done = std::move(done), expected](std::exception_ptr error, Array value) {
    try {
      if (error) std::rethrow_exception(error);
      if (value.dtype() != c.output_dtype(0) || (expected && value.shape() != *expected)) {
        throw InvalidArgumentError(cat("Received ", value.dtype(), value.shape(), " where ",
                                       c.output_dtype(0), expected.value_or(value.shape()),
                                       " is expected."));
      }
      c.set_output(0, std::move(value));
    } catch (...) {
      return done(std::current_exception());
    }
    done(nullptr);
  };
}

Collectives::Reduction reduction_of(const std::string& name, bool mean) {
  if (name == "Min" || name == "min") return Collectives::Reduction::kMin;
  if (name == "Max" || name == "max") return Collectives::Reduction::kMax;
  if (name == "Mul" || name == "prod") return Collectives::Reduction::kProduct;
  return mean ? Collectives::Reduction::kMean : Collectives::Reduction::kSum;
}

Collectives::Reduction reduction_of(const KernelContext& c) {
  const bool divides = c.attr<std::string>("final_op") == "Div";
  const std::string& merge = c.attr<std::string>("merge_op");
  if (divides && merge != "Add") {
    throw UnimplementedError(cat("The final_op 'Div' goes with the merge_op 'Add', not with '",
                                 merge, "': divide the result of 'Id' instead."));
  }
  return reduction_of(merge, divides);
}

void reduce(KernelContext& c, KernelDone done) {
  const Collectives::Reduction reduction = reduction_of(c);
  const Collectives::Member me = keyed_member(c, 1);
  take_part(c, me, [&](Collectives& group) {
    group.all_reduce(me, c.input(0), reduction, finish(c, std::move(done)));
  });
}

void scatter(KernelContext& c, KernelDone done) {
  const Collectives::Reduction reduction = reduction_of(c);
  const Collectives::Member me = keyed_member(c, 1);
  take_part(c, me, [&](Collectives& group) {
    group.reduce_scatter(me, c.input(0), reduction, finish(c, std::move(done)));
  });
}

// The result's shape where it is an attribute.
std::optional<Shape> announced(const KernelContext& c) {
  if (!c.find_attr("shape")) return std::nullopt;
  const PartialShape& shape = c.attr<PartialShape>("shape");
  if (!shape.is_fully_known()) return std::nullopt;
  return Shape(shape.dims());
}

void gather(KernelContext& c, KernelDone done) {
  const Collectives::Member me = keyed_member(c, 1);
  take_part(c, me, [&](Collectives& group) {
    group.all_gather(me, c.input(0), finish(c, std::move(done), announced(c)));
  });
}

void send(KernelContext& c, KernelDone done) {
  const Collectives::Member me = keyed_member(c, 1);
  take_part(c, me, [&](Collectives& group) {
    group.broadcast(me, c.input(0), finish(c, std::move(done), announced(c)));
  });
}

Shape shape_of(const Array& value) {
  std::vector<std::int64_t> dims;
  if (value.rank() != 1)
    throw InvalidArgumentError(cat("shape must be a vector, got ", value.shape(), '.'));
  for (std::int64_t i = 0; i < value.num_elements(); ++i) {
    dims.push_back(value.dtype() == DType::kInt32 ? value.data<std::int32_t>()[i]
                                                  : value.data<std::int64_t>()[i]);
  }
  return Shape(dims);
}

void receive(KernelContext& c, KernelDone done) {
  const Collectives::Member me = keyed_member(c, 0);
  const std::optional<Shape> shape = c.num_inputs() > 0 ? shape_of(c.input(3)) : announced(c);
  take_part(c, me, [&](Collectives& group) {
    group.broadcast(me, Array(), finish(c, std::move(done), shape));
  });
}

void nccl_all_reduce(KernelContext& c, KernelDone done) {
  const Collectives::Member me = member(c, cat("nccl:", c.attr<std::string>("shared_name")),
                                        c.attr<std::int64_t>("num_devices"));
  take_part(c, me, [&](Collectives& group) {
    group.all_reduce(me, c.input(0), reduction_of(c.attr<std::string>("reduction"), false),
                     finish(c, std::move(done)));
  });
}

// By the same sums as a group's.
void nccl_reduce(KernelContext& c, KernelDone done) {
  LocalCollectives group;
  const int count = c.num_inputs();
  const Collectives::Reduction reduction = reduction_of(c.attr<std::string>("reduction"), false);
  for (int i = 0; i < count; ++i) {
    Collectives::Member me = member(c, "inputs", count);
    me.rank = i;
    group.all_reduce(
        me, c.input(i), reduction,
        i == 0 ? finish(c, std::move(done)) : [](const std::exception_ptr&, const Array&) {});
  }
}

void nccl_broadcast(KernelContext& c) { c.set_output(0, c.input(0)); }

// Devices of every class: what they cannot do among themselves meets in host memory.
const KernelRegistration kReduce{
    {.op = "CollectiveReduceV2", .kernel_class = "*", .run_async = reduce}};
const KernelRegistration kScatter{
    {.op = "CollectiveReduceScatterV2", .kernel_class = "*", .run_async = scatter}};
const KernelRegistration kGather{
    {.op = "CollectiveGatherV2", .kernel_class = "*", .run_async = gather}};
const KernelRegistration kSend{
    {.op = "CollectiveBcastSendV2", .kernel_class = "*", .run_async = send}};
const KernelRegistration kReceive{
    {.op = "CollectiveBcastRecvV2", .kernel_class = "*", .run_async = receive}};
const KernelRegistration kOldReduce{
    {.op = "CollectiveReduce", .kernel_class = "*", .run_async = reduce}};
const KernelRegistration kOldGather{
    {.op = "CollectiveGather", .kernel_class = "*", .run_async = gather}};
const KernelRegistration kOldSend{
    {.op = "CollectiveBcastSend", .kernel_class = "*", .run_async = send}};
const KernelRegistration kOldReceive{
    {.op = "CollectiveBcastRecv", .kernel_class = "*", .run_async = receive}};
const KernelRegistration kNcclAllReduce{
    {.op = "NcclAllReduce", .kernel_class = "*", .run_async = nccl_all_reduce}};
const KernelRegistration kNcclReduce{
    {.op = "NcclReduce", .kernel_class = "*", .run_async = nccl_reduce}};
const KernelRegistration kNcclBroadcast{
    {.op = "NcclBroadcast", .kernel_class = "*", .run = nccl_broadcast}};

}  // namespace
}  // namespace tandem::cpu
