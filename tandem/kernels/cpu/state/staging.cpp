// The ops of staging areas. Those that may have to wait are asynchronous.

#include "tandem/core/error.h"
#include "tandem/kernels/cpu/state/resource_op.h"
#include "tandem/kernels/cpu/state/staging_area.h"

namespace tandem::cpu {
namespace {

// The area has no handle: every op names it, and the first to run makes it.
Ref<StagingArea> area(const KernelContext& c) {
  const auto& container = c.attr<std::string>("container");
  const auto& shared_name = c.attr<std::string>("shared_name");
  return c.resources().lookup_or_create<StagingArea>(
      container.empty() ? kDefaultContainer : container,
      shared_name.empty() ? c.node_name() : std::string_view(shared_name), "staging area", [&] {
        return make_ref<StagingArea>(c.attr<std::int64_t>("capacity"),
                                     c.attr<std::int64_t>("memory_limit"));
      });
}

void put(KernelContext& c, KernelDone done) {
  StagingArea::Tuple tuple;
  for (int i = 0; i < c.num_inputs(); ++i) tuple.push_back(c.input(i));
  area(c)->put(std::move(tuple), c.cancellation(), std::move(done));
}

// TensorFlow's process ends where the dtypes differ.
void set_outputs(KernelContext& c, StagingArea::Tuple tuple) {
  const auto count = static_cast<std::size_t>(c.num_outputs());
  if (tuple.size() != count) {
    throw InvalidArgumentError(cat("Mismatch stage/unstage: ", tuple.size(), " vs. ", count));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const int output = static_cast<int>(i);
    if (tuple[i].dtype() != c.output_dtype(output)) {
      throw InvalidArgumentError(cat("Value ", i, " was staged as ", tuple[i].dtype(),
                                     ", but is asked for as ", c.output_dtype(output), "."));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    c.set_output(static_cast<int>(i), std::move(tuple[i]));
  }
}

StagingArea::TakeDone finish(KernelContext& c, KernelDone done) {
  return [&c, done = std::move(done)](std::exception_ptr error, StagingArea::Tuple tuple) {
    try {
      if (!error) set_outputs(c, std::move(tuple));
    } catch (...) {
      error = std::current_exception();
    }
    done(error);
  };
}

void take(KernelContext& c, KernelDone done) {
  area(c)->take(c.cancellation(), finish(c, std::move(done)));
}

void peek(KernelContext& c, KernelDone done) {
  if (c.input(0).rank() != 0) throw InvalidArgumentError("index must be scalar");
  const std::int32_t index = *c.input(0).data<std::int32_t>();
  if (index < 0) {  // TensorFlow waits for ever
    throw InvalidArgumentError(cat("index must not be negative, but is ", index, "."));
  }
  area(c)->peek(index, c.cancellation(), finish(c, std::move(done)));
}

void size(KernelContext& c) {
  *c.allocate_output(0, Shape{}).data<std::int32_t>() = static_cast<std::int32_t>(area(c)->size());
}

void clear(KernelContext& c) { area(c)->clear(); }

const KernelRegistration kStage{{.op = "Stage", .run_async = put}};
const KernelRegistration kUnstage{{.op = "Unstage", .run_async = take}};
const KernelRegistration kPeek{{.op = "StagePeek", .run_async = peek}};
const KernelRegistration kSize{{.op = "StageSize", .run = size}};
const KernelRegistration kClear{{.op = "StageClear", .run = clear}};

}  // namespace
}  // namespace tandem::cpu
