#include "tandem/io/summary.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/summary_call.h"
#include "tandem/kernels/cpu/state/resource_op.h"
#include "tandem/ops/cast_ops.h"
#include "tandem/ops/control_flow.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/thread_context.h"
#include "tandem/runtime/trace.h"

namespace tandem::summary {

// ---- The state of a thread ----

SummaryScope::State& summary_state() {
  thread_local SummaryScope::State state;
  return state;
}

SummaryScope::SummaryScope(std::unique_ptr<State> saved) : saved_(std::move(saved)) {}
SummaryScope::~SummaryScope() { summary_state() = std::move(*saved_); }

namespace {

std::unique_ptr<SummaryScope::State> saved_state() {
  return std::make_unique<SummaryScope::State>(summary_state());
}

SummaryScope with_condition(SummaryScope::State::Condition condition) {
  auto saved = saved_state();
  summary_state().condition = std::move(condition);
  return SummaryScope(std::move(saved));
}

const Step& step_or_default(const Step& step) {
  const Step& found = step.defined() ? step : summary_state().step;
  if (found.defined()) return found;
  throw InvalidArgumentError(
      "No step set. Please specify one either through the `step` argument or through "
      "td::summary::experimental::set_step().");
}

Tensor as_int64(const Tensor& step) {
  if (step.rank() > 0 || !is_integer(step.dtype())) {
    throw InvalidArgumentError(cat("A summary's step must be an integer scalar, got ", step.dtype(),
                                   " of shape ", step.partial_shape(), "."));
  }
  return step.dtype() == DType::kInt64 ? step : cast(step, DType::kInt64);
}

}  // namespace

SummaryScope record_if(bool condition) { return with_condition(condition); }
SummaryScope record_if(Tensor condition) { return with_condition(std::move(condition)); }
SummaryScope record_if(std::function<Tensor()> condition) {
  return with_condition(std::move(condition));
}

void experimental::set_step(const Step& step) { summary_state().step = step; }
Step experimental::get_step() { return summary_state().step; }

bool is_tracing() { return thread_context().trace != nullptr; }

std::string tag_of(std::string_view name) { return cat(thread_context().name_scope, name); }

std::int64_t step_value(const Step& step) {
  const auto& value = step_or_default(step).value();
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  return step_tensor(step).item<std::int64_t>();
}

Tensor step_tensor(const Step& step) {
  const auto& value = step_or_default(step).value();
  if (const auto* number = std::get_if<std::int64_t>(&value)) return Tensor(*number);
  if (const auto* tensor = std::get_if<Tensor>(&value)) return as_int64(*tensor);
  return as_int64(std::get<Variable>(value).read_value());
}

namespace {

Tensor condition_tensor(const SummaryScope::State::Condition& condition) {
  if (const auto* fixed = std::get_if<bool>(&condition)) return Tensor(*fixed);
  if (const auto* tensor = std::get_if<Tensor>(&condition)) return *tensor;
  return std::get<std::function<Tensor()>>(condition)();
}

}  // namespace

bool holds(const SummaryScope::State::Condition& condition) {
  const auto* fixed = std::get_if<bool>(&condition);
  return fixed ? *fixed : static_cast<bool>(condition_tensor(condition));
}

Tensor should_record_summaries() {
  if (!summary_state().writer) return Tensor(false);
  return condition_tensor(summary_state().condition);
}

// ---- Writers ----

SummaryWriter::SummaryWriter(std::shared_ptr<const State> state) : state_(std::move(state)) {}

SummaryScope SummaryWriter::as_default(const Step& step) const {
  auto saved = saved_state();
  set_as_default(step);
  return SummaryScope(std::move(saved));
}

void SummaryWriter::set_as_default(const Step& step) const {
  summary_state().writer = state_;
  if (step.defined()) summary_state().step = step;
}

void SummaryWriter::flush() const {
  if (!state_) return;
  if (is_tracing()) {
    raw_op("FlushSummaryWriter", {state_->handle});
  } else {
    state_->writer->flush();
  }
}

void SummaryWriter::close() const {
  if (!state_) return;
  if (is_tracing()) {
    raw_op("CloseSummaryWriter", {state_->handle});
  } else {
    state_->writer->close();
  }
}

std::string SummaryWriter::path() const { return state_ ? state_->writer->path() : ""; }

const Tensor& SummaryWriter::resource() const {
  static const Tensor none;
  return state_ ? state_->handle : none;
}

SummaryWriter create_file_writer(const String& logdir, const FileWriterOptions& options) {
  const TraceScope eager(nullptr);
  const StopRecording unheard;
  auto state = std::make_shared<SummaryWriter::State>();
  state->handle =
      raw_op("SummaryWriter", {}, {{"shared_name", std::string(cpu::kAnonymousName)}})[0];
  raw_op("CreateSummaryFileWriter",
         {state->handle, Tensor(logdir), Tensor(options.max_queue), Tensor(options.flush_millis),
          Tensor(options.filename_suffix)});
  Resource* resource = state->handle.array().data<ResourceHandle>()->resource();
  state->writer = Ref<io::EventWriter>(dynamic_cast<io::EventWriter*>(resource));
  return SummaryWriter(std::move(state));
}

// ---- Writing ----

namespace {

void add_to_graph(const SummaryCall& call, const Tensor& handle) {
  raw_op("WriteSummary", {handle, step_tensor(call.step), call.tensor(), Tensor(call.tag),
                          Tensor(call.metadata())});
}

void add_event(const SummaryCall& call, io::EventWriter& writer) {
  io::PendingEvent event;
  event.kind = io::PendingEvent::Kind::kTensor;
  event.step = step_value(call.step);
  event.wall_time = io::wall_time_now();
  event.text = call.tag;
  event.tensor = call.tensor().array();
  event.metadata = std::make_shared<const std::string>(call.metadata());
  writer.add(std::move(event));
}

}  // namespace

bool write_summary(const SummaryCall& call) {
  const SummaryScope::State& state = summary_state();
  if (!state.writer) return false;
  const StopRecording unheard;
  if (!is_tracing()) {
    if (!holds(state.condition)) return false;
    add_event(call, *state.writer->writer);
    return true;
  }
  const Tensor condition = condition_tensor(state.condition);
  if (!condition.is_symbolic()) {
    if (!static_cast<bool>(condition)) return false;
    add_to_graph(call, state.writer->handle);
    return true;
  }
  cond(
      condition,
      [&] {
        add_to_graph(call, state.writer->handle);
        return Tensor(true);
      },
      [] { return Tensor(false); });
  return true;
}

bool write(StringView tag, const Tensor& tensor, const Metadata& metadata, const Step& step) {
  const auto bytes = [&] {
    return io::summary_metadata(metadata.plugin_name, metadata.content, metadata.description,
                                metadata.display_name);
  };
  return write_summary({std::string(tag), step, bytes, [&] { return tensor; }});
}

// Scalars come by the million, so they take a short way to the queue.
bool internal::write_scalar(StringView name, double value, const SummaryOptions& options) {
  const SummaryScope::State& state = summary_state();
  if (!state.writer) return false;
  if (is_tracing()) return scalar(name, Tensor(value), options);
  if (!holds(state.condition)) return false;
  io::PendingEvent event;
  event.number = static_cast<float>(value);
  event.step = step_value(options.step);
  event.wall_time = io::wall_time_now();
  const std::string& scope = thread_context().name_scope;
  event.text.reserve(scope.size() + name.size());
  event.text.append(scope).append(name);
  if (!options.description.empty()) {
    event.metadata = std::make_shared<const std::string>(
        io::summary_metadata("scalars", {}, options.description));
  }
  state.writer->writer->add(std::move(event));
  return true;
}

}  // namespace tandem::summary
