#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/ref.h"
#include "tandem/io/internal/event_writer.h"
#include "tandem/io/summary.h"

namespace tandem::summary {

struct SummaryWriter::State {
  Tensor handle;
  Ref<io::EventWriter> writer;
};

/// What the calls of one thread depend on. TensorFlow keeps it for each thread, too: a graph holds
/// the writer that it was traced with, so no pool has to carry it along.
struct SummaryScope::State {
  using Condition = std::variant<bool, Tensor, std::function<Tensor()>>;
  std::shared_ptr<const SummaryWriter::State> writer;  ///< null: nothing is written
  Step step;
  Condition condition = true;
};
SummaryScope::State& summary_state();

/// A summary that a call is to write, unless nothing takes it.
struct SummaryCall {
  std::string tag;
  Step step;
  std::function<std::string()> metadata;  ///< a serialized SummaryMetadata
  std::function<Tensor()> tensor;         ///< called only if it is written
};
/// Writes it, or adds what writes it to the graph being traced.
bool write_summary(const SummaryCall& call);

/// `name` behind the thread's name scope.
std::string tag_of(std::string_view name);
/// The value of the step, or of the default one; throws InvalidArgumentError if there is none.
/// While a function is traced use `step_tensor`.
std::int64_t step_value(const Step& step);
Tensor step_tensor(const Step& step);
bool is_tracing();
/// Whether a condition holds now; not while a function is traced.
bool holds(const SummaryScope::State::Condition& condition);

}  // namespace tandem::summary
