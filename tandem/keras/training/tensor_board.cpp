#include "tandem/keras/tensor_board.h"

#include <chrono>
#include <exception>
#include <optional>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/core/log.h"
#include "tandem/io/profile_export.h"
#include "tandem/io/summary.h"
#include "tandem/keras/internal/model_graph.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/internal/weight_summaries.h"
#include "tandem/keras/model_impl.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/comparison_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/runtime/profiler.h"

namespace tandem::keras::callbacks {

UpdateFreq::UpdateFreq(const char* text) {
  const std::string_view word = text;
  if (word != "epoch" && word != "batch") {
    throw InvalidArgumentError(
        cat("TensorBoard's update_freq is \"epoch\", \"batch\" or a number "
            "of batches, not \"",
            word, "\"."));
  }
  batches_ = word == "batch" ? 1 : 0;
}
UpdateFreq::UpdateFreq(Batches batches) : batches_(batches.count) {
  if (batches_ < 1) {
    throw InvalidArgumentError(
        cat("TensorBoard's update_freq must be at least 1 batch, got ", batches_, "."));
  }
}

ProfileBatch::ProfileBatch(std::int64_t first, std::int64_t last) : first_(first), last_(last) {
  if (first < 0 || last < first) {
    throw InvalidArgumentError(
        cat("profile_batch must be a non-negative integer or 2-tuple of positive integers. A pair "
            "of positive integers signifies a range of batches to profile. Found: ",
            first, ", ", last));
  }
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool due(int freq, int epoch) { return freq > 0 && epoch % freq == 0; }

// One of the two runs. Its file is made when something is written to it.
class Run {
 public:
  Run(const TensorBoardOptions& options, std::string name)
      : store_(options.event_store),
        name_(std::move(name)),
        folder_(cat(options.log_dir, "/", name_)),
        step_(Tensor(std::int64_t{0}), {.name = "tensorboard_step"}) {}

  const summary::SummaryWriter& writer() {
    if (!writer_) writer_ = store_ ? store_->writer(name_) : summary::create_file_writer(folder_);
    return *writer_;
  }
  const std::string& folder() const { return folder_; }

  // What the model writes itself goes to this run, in batches whose number `freq` divides. The
  // number is a variable, since the model's graph is traced once.
  void push(std::int64_t freq) {
    pop();  // what an earlier training that failed has left
    freq_ = freq;
    scope_.reset(new summary::SummaryScope(writer().as_default(step_)));
    condition_.reset(new summary::SummaryScope(summary::record_if([this, freq] {
      return equal(step_.read_value() % Tensor(freq), Tensor(std::int64_t{0}));
    })));
  }
  void pop() {
    condition_.reset();
    scope_.reset();
  }
  bool pushed() const { return scope_ != nullptr; }
  std::int64_t number() const { return number_; }
  void count() {
    ++number_;
    if (pushed()) step_.assign(Tensor(number_));
  }
  void restart() {
    number_ = 0;
    step_.assign(Tensor(number_));
  }
  // Whether metrics of this batch are to be written.
  bool records() const { return pushed() && number_ % freq_ == 0; }

  void close() {
    if (writer_) writer_->close();
    writer_.reset();
  }

 private:
  std::optional<io::EventStore> store_;
  std::string name_;
  std::string folder_;
  Variable step_;
  std::int64_t number_ = 0;  // the value of step_
  std::int64_t freq_ = 1;
  std::optional<summary::SummaryWriter> writer_;
  std::unique_ptr<summary::SummaryScope> scope_;
  std::unique_ptr<summary::SummaryScope> condition_;
};

void write_all(const char* prefix, const Logs& logs, const char* suffix, std::int64_t step) {
  for (const auto& [name, value] : logs.entries())
    summary::scalar(cat(prefix, name, suffix), value, {.step = step});
}

void write_histograms(const internal::Trainer::Observation::Named& values, const char* kind,
                      std::int64_t step) {
  for (const auto& [name, value] : values) {
    if (is_floating(value.dtype()) || is_integer(value.dtype()))
      summary::histogram(internal::weight_tag(name, kind), value, {.step = step});
  }
}

}  // namespace

struct TensorBoard::State {
  explicit State(TensorBoardOptions given)
      : options(std::move(given)), train(options, "train"), validation(options, "validation") {}
  // A training that failed may have left the profiler running.
  ~State() {
    step.reset();
    if (profiling && profiler::running()) profiler::stop();
  }

  void push(Run& run) {
    if (!options.update_freq.each_epoch()) run.push(options.update_freq.batches());
  }

  void write_layers(const Model& model) {
    const std::string json = internal::model_graph_json(model);
    const auto on = train.writer().as_default();
    if (!json.empty())
      summary::write("keras", Tensor(json), {.plugin_name = "graph_keras_model", .content = "1"},
                     0);
  }

  // A graph that cannot be written does not end the training.
  void write_train_graph(const internal::Trainer& trainer) {
    const ConcreteFunction& function = trainer.train_function();
    if (!function.defined()) return;
    const auto on = train.writer().as_default();
    try {
      summary::graph(function, 0);
    } catch (const Error& error) {
      log(LogLevel::kWarning,
          cat("TensorBoard: the training step's graph is not written: ", error.what()));
    }
  }

  void start_profile() {
    try {
      profiler::start({.memory = true});
      profiling = true;
    } catch (const FailedPreconditionError& error) {
      log(LogLevel::kWarning, cat("TensorBoard: no batch is profiled: ", error.what()));
    }
  }
  void stop_profile() {
    step.reset();
    profiling = false;
    const profiler::Profile profile = profiler::stop();
    io::write_tensorboard_profile(train.folder(), profile);
    const auto on = train.writer().as_default();
    summary::write(
        cat("batch_", options.profile_batch.last()), Tensor(io::to_run_metadata(profile)),
        {.plugin_name = "graph_run_metadata_graph", .content = "1"}, options.profile_batch.last());
  }
  // A step lasts from the end of the one before, since it begins by waiting for its batch.
  void next_step(std::int64_t number) {
    step.reset();
    step = std::make_unique<io::ProfiledStep>("train", number);
  }

  TensorBoardOptions options;
  Run train;
  Run validation;
  bool training = false;
  bool graph_is_due = false;
  bool observes = false;
  int epoch = 0;
  std::int64_t iterations_before = 0;
  Clock::time_point epoch_begin;
  Clock::time_point batch_begin;
  bool profiling = false;
  std::unique_ptr<io::ProfiledStep> step;
};

TensorBoard::TensorBoard(TensorBoardOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}
TensorBoard::~TensorBoard() = default;
TensorBoard::TensorBoard(const TensorBoard&) = default;
TensorBoard::TensorBoard(TensorBoard&&) noexcept = default;
TensorBoard& TensorBoard::operator=(const TensorBoard&) = default;
TensorBoard& TensorBoard::operator=(TensorBoard&&) noexcept = default;

void TensorBoard::on_train_begin() {
  State& s = *state_;
  s.training = true;
  s.train.restart();
  s.graph_is_due = s.options.write_graph;
  model().model_impl().trainer()->observe_input(s.options.profile_batch.any());
  if (s.options.write_graph) s.write_layers(model());
  if (s.options.embeddings_freq > 0) {
    internal::write_projector_config(model(), s.options.log_dir, s.options.embeddings_metadata);
  }
  s.push(s.train);
}

void TensorBoard::on_train_end(const Logs&) {
  State& s = *state_;
  s.training = false;
  s.train.pop();
  if (s.profiling) s.stop_profile();
  model().model_impl().trainer()->observe_input(false);
  s.train.close();
  s.validation.close();
}

void TensorBoard::on_epoch_begin(int epoch) {
  State& s = *state_;
  s.epoch = epoch;
  s.observes = due(s.options.histogram_freq, epoch) &&
               (s.options.write_gradients || s.options.write_activations);
  s.epoch_begin = Clock::now();
  if (s.options.write_steps_per_second) s.iterations_before = model().optimizer().iterations();
}

void TensorBoard::on_train_batch_begin(std::int64_t) {
  State& s = *state_;
  s.train.count();
  s.batch_begin = Clock::now();
  internal::Trainer& trainer = *model().model_impl().trainer();
  if (s.graph_is_due) trainer.keep_next_function();
  if (s.observes) trainer.observe_next();
  const std::int64_t number = s.train.number();
  const ProfileBatch& profiled = s.options.profile_batch;
  if (profiled.any() && number == std::max<std::int64_t>(profiled.first(), 1)) s.start_profile();
  if (s.profiling && !s.step) s.next_step(number);
}

void TensorBoard::on_train_batch_end(std::int64_t batch, const BatchLogs& logs) {
  State& s = *state_;
  const std::int64_t number = s.train.number();
  const internal::Trainer& trainer = *model().model_impl().trainer();
  if (s.profiling) {
    const bool last_of_epoch = params().steps >= 0 && batch + 1 >= params().steps;
    if (number >= s.options.profile_batch.last()) {
      s.stop_profile();
      model().model_impl().trainer()->observe_input(false);
    } else if (last_of_epoch) {
      s.step.reset();
    } else {
      s.next_step(number + 1);
    }
  }
  if (std::exchange(s.observes, false)) {
    const auto on = s.train.writer().as_default();
    const auto always = summary::record_if(true);
    if (s.options.write_gradients)
      write_histograms(trainer.observation().gradients, "gradient", s.epoch);
    if (s.options.write_activations)
      write_histograms(trainer.observation().activations, "activation", s.epoch);
  }
  if (std::exchange(s.graph_is_due, false)) {
    const auto always = summary::record_if(true);
    s.write_train_graph(trainer);
  }
  if (!s.train.records()) return;
  if (s.options.write_steps_per_second) {
    summary::scalar("batch_steps_per_second", 1 / seconds_since(s.batch_begin), {.step = number});
  }
  write_all("batch_", logs.get(), "", number);
}

void TensorBoard::on_epoch_end(int epoch, Logs& logs) {
  State& s = *state_;
  s.step.reset();
  const auto always = summary::record_if(true);
  Logs train, validation;
  for (const auto& [name, value] : logs.entries()) {
    constexpr std::string_view kValidation = "val_";
    if (name.starts_with(kValidation)) {
      validation.set(name.substr(kValidation.size()), value);
    } else {
      train.set(name, value);
    }
  }
  if (!validation.empty()) {
    const auto on = s.validation.writer().as_default();
    write_all("epoch_", validation, "", epoch);
  }
  const Optimizer& optimizer = model().optimizer();
  train.set("learning_rate", optimizer.learning_rate());
  if (s.options.write_steps_per_second) {
    const auto steps = static_cast<double>(optimizer.iterations() - s.iterations_before);
    train.set("steps_per_second", steps / seconds_since(s.epoch_begin));
  }
  const auto on = s.train.writer().as_default();
  write_all("epoch_", train, "", epoch);
  if (due(s.options.histogram_freq, epoch))
    internal::write_weights(model(), epoch, s.options.write_images);
  // An epoch that was reported is there even if the process is killed in the next one.
  s.train.writer().flush();
  if (!validation.empty()) s.validation.writer().flush();
  if (due(s.options.embeddings_freq, epoch))
    internal::write_embeddings(model(), s.options.log_dir, epoch);
}

void TensorBoard::on_test_begin() { state_->push(state_->validation); }

void TensorBoard::on_test_batch_begin(std::int64_t) { state_->validation.count(); }

void TensorBoard::on_test_batch_end(std::int64_t, const BatchLogs&) {}

void TensorBoard::on_test_end(const Logs& logs) {
  State& s = *state_;
  s.validation.pop();
  const auto on = s.validation.writer().as_default();
  const auto always = summary::record_if(true);
  write_all("evaluation_", logs, "_vs_iterations", model().optimizer().iterations());
  if (!s.training) s.validation.close();
}

}  // namespace tandem::keras::callbacks
