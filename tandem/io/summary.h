#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"
#include "tandem/runtime/traced_function.h"

/// Summaries for TensorBoard, as tf.summary has them:
///
///     auto writer = td::summary::create_file_writer("logs/run1");
///     auto on = writer.as_default();
///     for (int step = 0; step < 100; ++step) {
///       …
///       td::summary::scalar("loss", loss, {.step = step});
///     }
///
/// Nothing is written where the thread has no default writer, so code may be full of summaries.
/// Inside td::function they become ops of the graph, which write to the writer that was the default
/// when it was traced. A summary's name stands behind the thread's NameScope.
///
/// Default writer, default step and `record_if` belong to the thread that sets them.
namespace tandem::summary {

/// The number of a step: a value, or where to read it when a summary is written.
class Step {
 public:
  Step() = default;  ///< the default step
  template <std::integral T>
  Step(T step) : value_(static_cast<std::int64_t>(step)) {}
  /// An integer scalar.
  Step(Tensor step) : value_(std::move(step)) {}
  Step(Variable step) : value_(std::move(step)) {}

  bool defined() const { return value_.index() != 0; }
  const std::variant<std::monostate, std::int64_t, Tensor, Variable>& value() const {
    return value_;
  }

 private:
  std::variant<std::monostate, std::int64_t, Tensor, Variable> value_;
};

struct FileWriterOptions {
  int max_queue = 10;          ///< events that may wait before they are written
  int flush_millis = 120'000;  ///< an event waits no longer than this
  String filename_suffix = ".v2";
};

/// Restores the thread's default writer, default step or `record_if` at the end of its block.
class TANDEM_EXPORT SummaryScope {
 public:
  ~SummaryScope();
  SummaryScope(const SummaryScope&) = delete;
  SummaryScope& operator=(const SummaryScope&) = delete;

  struct State;
  explicit SummaryScope(std::unique_ptr<State> saved);

 private:
  std::unique_ptr<State> saved_;
};

/// Writes an event file. A handle: copies write to the same file, which the last one closes.
/// Thread-safe.
///
/// Summaries are queued, and a thread of the writer's own appends them to the file. What `flush`
/// has returned for is in the file whatever becomes of the process. A failure to write, of a full
/// disk for instance, is thrown by the next summary and by all after it.
class TANDEM_EXPORT SummaryWriter {
 public:
  /// Writes nothing.
  SummaryWriter() = default;

  /// The writer of the calling thread's summaries until the scope ends, and their step, if given.
  [[nodiscard]] SummaryScope as_default(const Step& step = {}) const;
  void set_as_default(const Step& step = {}) const;
  /// Inside td::function, when the graph runs.
  void flush() const;
  /// Flushes; summaries that are written later throw FailedPreconditionError. As `flush` in
  /// functions.
  void close() const;
  /// The event file; "" of a writer that writes nothing.
  std::string path() const;
  /// The handle that summary ops take. Undefined for a writer that writes nothing.
  const Tensor& resource() const;

  struct State;
  explicit SummaryWriter(std::shared_ptr<const State> state);
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

/// Makes the folder and in it the file events.out.tfevents.SECONDS.HOST.PID.NUMBER and the suffix.
/// Throws the file system's error, and InvalidArgumentError for a negative max_queue or
/// flush_millis below 1.
TANDEM_EXPORT SummaryWriter create_file_writer(const String& logdir,
                                               const FileWriterOptions& options = {});
inline SummaryWriter create_noop_writer() { return {}; }

/// The thread's summaries are written only where the condition holds: a value, a boolean scalar
/// (symbolic in functions), or what computes it whenever one is written.
///
///     auto rarely = td::summary::record_if(step % 100 == 0);
[[nodiscard]] TANDEM_EXPORT SummaryScope record_if(bool condition);
[[nodiscard]] TANDEM_EXPORT SummaryScope record_if(Tensor condition);
[[nodiscard]] TANDEM_EXPORT SummaryScope record_if(std::function<Tensor()> condition);
/// Whether a summary would be written: a scalar of bool.
TANDEM_EXPORT Tensor should_record_summaries();

namespace experimental {
/// The step of the thread's summaries that name none. Without either, writing one throws
/// InvalidArgumentError.
TANDEM_EXPORT void set_step(const Step& step);
TANDEM_EXPORT Step get_step();
}  // namespace experimental

/// What TensorBoard should make of a tensor.
struct Metadata {
  String plugin_name = {};
  String content = {};  ///< bytes for the plugin
  String display_name = {};
  String description = {};  ///< in Markdown
};

struct SummaryOptions {
  Step step = {};
  String description = {};  ///< in Markdown
};
struct HistogramOptions {
  Step step = {};
  std::int64_t buckets = 30;
  String description = {};
};
struct ImageOptions {
  Step step = {};
  std::int64_t max_outputs = 3;
  String description = {};
};
struct AudioOptions {
  Step step = {};
  std::int64_t max_outputs = 3;
  String description = {};
};

namespace internal {
TANDEM_EXPORT bool write_scalar(StringView name, double value, const SummaryOptions& options);
/// What may stand for a step by its position. Braces are options.
template <class S>
concept StepLike = std::convertible_to<const S&, Step>;
}  // namespace internal

// Each returns whether there is a writer that takes the summary (true also in a function whose
// condition is not known yet). What stands in the options may also be given by position, in
// TensorFlow's order: `td::summary::scalar("loss", loss, step)`.

/// A number. Throws InvalidArgumentError if `data` is not one.
TANDEM_EXPORT bool scalar(StringView name, const Tensor& data, const SummaryOptions& options = {});
template <class T>
requires std::is_arithmetic_v<T>
bool scalar(StringView name, T value, const SummaryOptions& options = {}) {
  return internal::write_scalar(name, static_cast<double>(value), options);
}
template <internal::StepLike S>
bool scalar(StringView name, const Tensor& data, const S& step, const String& description = {}) {
  return scalar(name, data, SummaryOptions{.step = step, .description = description});
}
template <class T, internal::StepLike S>
requires std::is_arithmetic_v<T>
bool scalar(StringView name, T value, const S& step, const String& description = {}) {
  return scalar(name, value, SummaryOptions{.step = step, .description = description});
}

/// How the values of a tensor of real numbers are distributed, in buckets of equal width between
/// the least and the greatest. NaN and infinities are left out.
TANDEM_EXPORT bool histogram(StringView name, const Tensor& data,
                             const HistogramOptions& options = {});
template <internal::StepLike S>
bool histogram(StringView name, const Tensor& data, const S& step, std::int64_t buckets = 30,
               const String& description = {}) {
  return histogram(name, data, {.step = step, .buckets = buckets, .description = description});
}

/// Images [count, height, width, channels] of 1 to 4 channels, uint8, or floating from 0 to 1.
TANDEM_EXPORT bool image(StringView name, const Tensor& data, const ImageOptions& options = {});
template <internal::StepLike S>
bool image(StringView name, const Tensor& data, const S& step, std::int64_t max_outputs = 3,
           const String& description = {}) {
  return image(name, data, {.step = step, .max_outputs = max_outputs, .description = description});
}

/// Clips [count, frames, channels] of float samples from -1 to 1, written as WAV.
TANDEM_EXPORT bool audio(StringView name, const Tensor& data, std::int64_t sample_rate,
                         const AudioOptions& options = {});
template <internal::StepLike S>
bool audio(StringView name, const Tensor& data, std::int64_t sample_rate, const S& step,
           std::int64_t max_outputs = 3, const String& description = {}) {
  return audio(name, data, sample_rate,
               {.step = step, .max_outputs = max_outputs, .description = description});
}

/// Strings in Markdown: a scalar, or a table of rank 1 or 2.
TANDEM_EXPORT bool text(StringView name, const Tensor& data, const SummaryOptions& options = {});
template <internal::StepLike S>
bool text(StringView name, const Tensor& data, const S& step, const String& description = {}) {
  return text(name, data, SummaryOptions{.step = step, .description = description});
}

/// Any tensor under `tag`, which no NameScope changes.
TANDEM_EXPORT bool write(StringView tag, const Tensor& tensor, const Metadata& metadata = {},
                         const Step& step = {});
template <internal::StepLike S>
bool write(StringView tag, const Tensor& tensor, const S& step, const Metadata& metadata = {}) {
  return write(tag, tensor, metadata, Step(step));
}

/// A graph for TensorBoard's page of graphs, a serialized GraphDef. One for each file is shown.
TANDEM_EXPORT bool graph(const String& graph_def, const Step& step = 0);
/// The graph of a traced function, with captured variables as placeholders.
TANDEM_EXPORT bool graph(const ConcreteFunction& function, const Step& step = 0);

struct TraceOptions {
  bool graph = true;      ///< the functions that the thread calls
  bool profiler = false;  ///< what runs where and when
};
/// Begins to note the functions that the calling thread calls, and to profile. A second call
/// before `trace_export` warns and changes nothing.
TANDEM_EXPORT void trace_on(const TraceOptions& options = {});
/// Writes what was noted since `trace_on`: the graphs as a summary of that name, the profile
/// below `profiler_outdir`. Throws FailedPreconditionError without a trace or without a writer, and
/// InvalidArgumentError if a profile needs an output folder.
TANDEM_EXPORT void trace_export(StringView name, const Step& step = {},
                                const String& profiler_outdir = {});
/// Ends the trace and drops what was noted.
TANDEM_EXPORT void trace_off();

}  // namespace tandem::summary
