#include "tandem/graph/local_collectives.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/core/error.h"

namespace tandem {

Collectives::~Collectives() = default;

namespace {

template <class T>
T combine(Collectives::Reduction reduction, T a, T b) {
  switch (reduction) {
    case Collectives::Reduction::kMax: return std::max(a, b);
    case Collectives::Reduction::kMin: return std::min(a, b);
    case Collectives::Reduction::kProduct: return a * b;
    default: return a + b;
  }
}

template <class T>
void reduce_into(Array& sum, const Array& next, Collectives::Reduction reduction) {
  T* to = sum.data<T>();
  const T* from = next.data<T>();
  for (std::int64_t i = 0; i < sum.num_elements(); ++i) to[i] = combine(reduction, to[i], from[i]);
}

template <class T>
void divide(Array& sum, int by) {
  T* to = sum.data<T>();
  for (std::int64_t i = 0; i < sum.num_elements(); ++i) to[i] /= static_cast<T>(by);
}

// Calls `body` with a value of the array's type.
template <class Body>
void with_number(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat: return body(float{});
    case DType::kDouble: return body(double{});
    case DType::kInt32: return body(std::int32_t{});
    case DType::kInt64: return body(std::int64_t{});
    default:
      throw UnimplementedError(
          cat("An all-reduce takes float, double, int32 and int64, not ", dtype, "."));
  }
}

Array reduced(const std::vector<Array>& inputs, Collectives::Reduction reduction) {
  for (const Array& input : inputs) {
    if (input.dtype() == inputs[0].dtype() && input.shape() == inputs[0].shape()) continue;
    throw InvalidArgumentError(cat("The members of an all-reduce give ", inputs[0].dtype(),
                                   inputs[0].shape(), " and ", input.dtype(), input.shape(),
                                   ": dtypes and shapes must agree."));
  }
  Array result = inputs[0].clone();
  with_number(result.dtype(), [&](auto number) {
    using T = decltype(number);
    for (std::size_t i = 1; i < inputs.size(); ++i) reduce_into<T>(result, inputs[i], reduction);
    if (reduction == Collectives::Reduction::kMean)
      divide<T>(result, static_cast<int>(inputs.size()));
  });
  return result;
}

Array gathered(const std::vector<Array>& inputs) {
  const Array& first = inputs[0];
  std::int64_t rows = 0;
  for (const Array& input : inputs) {
    const bool fits = input.rank() > 0 && input.rank() == first.rank() &&
                      input.dtype() == first.dtype() && !is_object(input.dtype()) &&
                      std::equal(input.shape().dims().begin() + 1, input.shape().dims().end(),
                                 first.shape().dims().begin() + 1);
    if (!fits) {
      throw InvalidArgumentError(cat("The members of an all-gather give ", first.dtype(),
                                     first.shape(), " and ", input.dtype(), input.shape(),
                                     ": only the first sizes may differ."));
    }
    rows += input.shape()[0];
  }
  std::vector<std::int64_t> dims = first.shape().to_vector();
  dims[0] = rows;
  Array result(first.dtype(), Shape(dims));
  auto* to = static_cast<char*>(result.raw_data());
  for (const Array& input : inputs) {
    if (input.num_bytes() != 0) std::memcpy(to, input.raw_data(), input.num_bytes());
    to += input.num_bytes();
  }
  return result;
}

}  // namespace

struct LocalCollectives::Work {
  enum Kind { kReduce, kGather, kBroadcast } kind = kReduce;
  Reduction reduction = Reduction::kSum;
  int root = 0;
  bool operator==(const Work&) const = default;
};

struct LocalCollectives::Group {
  Work work;
  std::vector<Array> inputs;  // by rank
  struct Waiting {
    Done done;
    const Cancellation* cancellation = nullptr;
    Cancellation::Token token = 0;
  };
  std::vector<std::optional<Waiting>> waiting;  // by rank
  std::size_t come = 0;
};

void LocalCollectives::all_reduce(const Member& member, Array input, Reduction reduction,
                                  Done done) {
  join(member, std::move(input), {.kind = Work::kReduce, .reduction = reduction}, std::move(done));
}
void LocalCollectives::all_gather(const Member& member, Array input, Done done) {
  join(member, std::move(input), {.kind = Work::kGather}, std::move(done));
}
void LocalCollectives::broadcast(const Member& member, Array input, int root, Done done) {
  join(member, std::move(input), {.kind = Work::kBroadcast, .root = root}, std::move(done));
}

void LocalCollectives::join(const Member& member, Array input, const Work& work, Done done) {
  const auto refused = [&](const std::string& why) {
    done(std::make_exception_ptr(InvalidArgumentError(
             cat("Collective '", member.key, "', rank ", member.rank, ": ", why))),
         Array());
  };
  if (member.group_size < 1 || member.rank < 0 || member.rank >= member.group_size)
    return refused(cat("a rank of a group of ", member.group_size, " lies from 0 below that."));
  if (work.kind == Work::kBroadcast && (work.root < 0 || work.root >= member.group_size))
    return refused(cat("there is no root ", work.root, "."));
  const auto rank = static_cast<std::size_t>(member.rank);
  std::shared_ptr<Group> group;
  std::string wrong;
  bool complete = false, cancelled = false;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Group>& entry = groups_[member.key];
    if (!entry) {
      entry = std::make_shared<Group>();
      entry->work = work;
      entry->inputs.resize(static_cast<std::size_t>(member.group_size));
      entry->waiting.resize(entry->inputs.size());
    }
    group = entry;
    if (group->inputs.size() != static_cast<std::size_t>(member.group_size)) {
      wrong = cat("the group has ", group->inputs.size(), " members for others and ",
                  member.group_size, " for this one.");
    } else if (!(group->work == work)) {
      wrong = "other members of the group ask for another kind of work.";
    } else if (group->waiting[rank]) {
      wrong = "this rank has come already.";
    } else {
      group->inputs[rank] = std::move(input);
      Group::Waiting& waiting = group->waiting[rank].emplace();
      waiting.done = done;
      complete = ++group->come == group->inputs.size();
      if (complete) {
        groups_.erase(member.key);
      } else if (member.cancellation) {
        waiting.cancellation = member.cancellation;
        waiting.token = member.cancellation->register_callback([this, key = member.key, group] {
          fail(key, group.get(),
               std::make_exception_ptr(CancelledError(
                   cat("Collective '", key, "' was cancelled before all members had come."))));
        });
        cancelled = waiting.token == 0;
      }
    }
  }
  if (!wrong.empty()) {
    fail(member.key, group.get(),
         std::make_exception_ptr(
             InvalidArgumentError(cat("Collective '", member.key, "': ", wrong))));
    return refused(wrong);
  }
  if (cancelled) {
    return fail(member.key, group.get(),
                std::make_exception_ptr(
                    CancelledError(cat("Collective '", member.key, "' was cancelled."))));
  }
  if (!complete) return;
  std::exception_ptr error;
  Array result;
  try {
    switch (work.kind) {
      case Work::kReduce: result = reduced(group->inputs, work.reduction); break;
      case Work::kGather: result = gathered(group->inputs); break;
      case Work::kBroadcast: result = group->inputs[static_cast<std::size_t>(work.root)]; break;
    }
  } catch (...) {
    error = std::current_exception();
  }
  for (auto& waiting : group->waiting) {
    if (waiting->token != 0) waiting->cancellation->deregister_callback(waiting->token);
    waiting->done(error, result);
  }
}

void LocalCollectives::fail(const std::string& key, const Group* group,
                            const std::exception_ptr& error) {
  std::shared_ptr<Group> failed;
  {
    std::lock_guard lock(mutex_);
    const auto found = groups_.find(key);
    if (found == groups_.end() || found->second.get() != group) return;
    failed = std::move(found->second);
    groups_.erase(found);
  }
  for (auto& waiting : failed->waiting) {
    if (!waiting) continue;
    if (waiting->token != 0) waiting->cancellation->deregister_callback(waiting->token);
    waiting->done(error, Array());
  }
}

}  // namespace tandem
