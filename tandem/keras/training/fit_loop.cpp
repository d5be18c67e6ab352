#include "tandem/keras/internal/fit_loop.h"

#include <bit>
#include <cmath>
#include <exception>
#include <iostream>

#include "tandem/core/error.h"
#include "tandem/data/state_archive.h"
#include "tandem/keras/internal/progress.h"
#include "tandem/keras/model_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem::keras::internal {
namespace {

void check(const FitOptions& o) {
  if (o.epochs < 0)
    throw InvalidArgumentError(cat("fit: epochs must not be negative, got ", o.epochs, "."));
  if (o.initial_epoch < 0) {
    throw InvalidArgumentError(
        cat("fit: initial_epoch must not be negative, got ", o.initial_epoch, "."));
  }
  if (o.validation_freq < 1) {
    throw InvalidArgumentError(
        cat("fit: validation_freq must be at least 1, got ", o.validation_freq, "."));
  }
}

void visit_logs(data::StateArchive& state, int& epoch, Logs& logs) {
  auto number = static_cast<std::int64_t>(epoch);
  state.value(number);
  epoch = static_cast<int>(number);
  std::vector<std::pair<std::string, double>> entries = logs.entries();
  entries.resize(static_cast<std::size_t>(state.length(entries.size())));
  for (auto& [name, value] : entries) {
    state.value(name);
    auto bits = std::bit_cast<std::int64_t>(value);
    state.value(bits);
    value = std::bit_cast<double>(bits);
    if (state.restoring()) logs.set(name, value);
  }
}

Callback::Params params_of(const FitOptions& o, Verbose verbose, std::int64_t steps) {
  const int level = verbose == Verbose::kSilent ? 0 : verbose == Verbose::kProgressBar ? 1 : 2;
  return {.epochs = o.epochs, .steps = steps, .verbose = level};
}

}  // namespace

FitLoop::FitLoop(Model model, std::shared_ptr<Trainer> trainer, data::Dataset dataset,
                 data::Dataset validation, const FitOptions& options)
    : model_(std::move(model)),
      trainer_(std::move(trainer)),
      options_(options),
      verbose_(resolve(options.verbose)),
      reader_(std::move(dataset), options.steps_per_epoch, model_.model_impl()),
      callbacks_(options.callbacks, model_, params_of(options, verbose_, reader_.steps())),
      batch_logs_([this] { return trainer_->results(); }) {
  check(options_);
  if (validation.defined())
    validation_.emplace(std::move(validation), options.validation_steps, model_.model_impl());
}

FitLoop::~FitLoop() { model_.model_impl().fit_state = nullptr; }

History FitLoop::run() {
  model_.model_impl().stop_training = false;
  model_.model_impl().fit_state = &state_;
  state_.epoch = options_.initial_epoch;
  callbacks_.notify([](Callback& c) { c.on_train_begin(); });
  reader_.observe(trainer_->observes_input());
  if (state_.restored) resume();
  Logs logs = past_.empty() ? Logs() : past_.back().second;
  while (state_.epoch < options_.epochs) {
    const int epoch = state_.epoch;
    logs = run_epoch(epoch);
    if (model_.model_impl().stop_training) break;
  }
  if (options_.epochs > 0 && trainer_->optimizer().impl()->built())
    trainer_->optimizer().finalize_variable_values();
  callbacks_.notify([&](Callback& c) { c.on_train_end(logs); });
  return history_;
}

Logs FitLoop::run_epoch(int epoch) {
  // In the middle of an epoch that another process began, metrics and dataset go on.
  const bool resumed = state_.batch != 0;
  if (!resumed) trainer_->reset();
  callbacks_.notify([&](Callback& c) { c.on_epoch_begin(epoch); });
  if (verbose_ != Verbose::kSilent && options_.epochs > 1) {
    std::cout << "Epoch " << epoch + 1 << '/' << options_.epochs << std::endl;
  }
  Progress progress(verbose_, reader_.steps());
  reader_.observe(trainer_->observes_input());
  if (!resumed) reader_.begin();
  data::Element batch;
  const bool weigh = !options_.class_weight.empty();
  const bool listeners = !callbacks_.empty();
  std::int64_t step = state_.batch;
  while (!model_.model_impl().stop_training && reader_.next(batch)) {
    if (weigh) add_class_weights(batch);
    if (listeners) callbacks_.notify([&](Callback& c) { c.on_train_batch_begin(step); });
    try {
      train(batch, epoch, step);
    } catch (...) {
      std::rethrow_exception(with_line(
          std::current_exception(),
          cat("in fit of model '", model_.name(), "', epoch ", epoch + 1, ", batch ", step + 1)));
    }
    state_.batch = step + 1;
    if (listeners) {
      batch_logs_.renew();
      callbacks_.notify([&](Callback& c) { c.on_train_batch_end(step, batch_logs_); });
      if (state_.at_batch_end) state_.at_batch_end();
    }
    progress.step_done(++step);
    if (progress.due()) progress.draw(step, trainer_->results());
  }
  if (step == 0 && !model_.model_impl().stop_training) {
    throw InvalidArgumentError(
        cat("fit: the dataset of model '", model_.name(),
            "' is empty: it gave no batch. Check the "
            "source, filters, and that batch(n) without remainder leaves something."));
  }
  Logs logs = trainer_->results();
  warn_of_nan(epoch, logs);
  if (validation_ && (epoch + 1) % options_.validation_freq == 0) validate(epoch, logs);
  progress.finish(step, logs);
  state_.epoch = epoch + 1;
  state_.batch = 0;
  callbacks_.notify([&](Callback& c) { c.on_epoch_end(epoch, logs); });
  past_.emplace_back(epoch, logs);
  history_.append(epoch, logs);
  if (state_.at_epoch_end) state_.at_epoch_end();
  return logs;
}

// Without a stream of the fit's own, ops go on where their last execution ended.
void FitLoop::train(const data::Element& batch, int epoch, std::int64_t step) {
  if (!state_.random) return trainer_->train(batch);
  RngPosition::Stream stream = *state_.random;
  stream.pass = static_cast<std::uint64_t>(epoch);
  ThreadContext context = thread_context();
  context.draws = std::make_shared<RngPosition>(stream, static_cast<std::uint64_t>(step));
  const ThreadContextScope scope(std::move(context));
  trainer_->train(batch);
}

void FitLoop::visit_state(data::StateArchive& state) {
  state.stage("Fit");
  auto epoch = static_cast<std::int64_t>(state_.epoch);
  state.value(epoch);
  state_.epoch = static_cast<int>(epoch);
  state.value(state_.batch);
  RngPosition::Stream random = state_.random.value_or(RngPosition::Stream());
  state.value(random.seed);
  state.value(random.seed2);
  if (state_.random) state_.random = random;
  std::string place = state.restoring() ? "" : reader_.save();
  state.value(place);
  if (state.restoring()) reader_.restore(place, state_.batch);
  const std::int64_t epochs = state.length(past_.size());
  if (state.restoring()) past_.assign(static_cast<std::size_t>(epochs), {});
  for (auto& [number, logs] : past_) visit_logs(state, number, logs);
  std::int64_t count = 0;
  callbacks_.notify([&](Callback&) { ++count; });
  const std::int64_t saved = state.length(static_cast<std::size_t>(count));
  data::StateArchive::require(saved == count, "fit has other callbacks now");
  callbacks_.notify([&](Callback& c) {
    state.stage("Callback");
    c.visit_state(state);
  });
}

std::string FitLoop::save_state() {
  data::StateArchive state;
  visit_state(state);
  return state.bytes();
}

void FitLoop::resume() {
  data::StateArchive state(*state_.restored);
  state_.restored.reset();
  visit_state(state);
  state.finish();
  for (const auto& [epoch, logs] : past_) history_.append(epoch, logs);
}

void FitLoop::validate(int epoch, Logs& logs) {
  try {
    trainer_->reset();
    callbacks_.notify([](Callback& c) { c.on_test_begin(); });
    const Logs results = test_pass(*trainer_, *validation_, callbacks_, [](std::int64_t) {});
    callbacks_.notify([&](Callback& c) { c.on_test_end(results); });
    for (const auto& [name, value] : results.entries()) logs.set("val_" + name, value);
    for (const std::string& name : results.unmaterialized()) logs.set_unmaterialized("val_" + name);
  } catch (...) {
    std::rethrow_exception(
        with_line(std::current_exception(),
                  cat("while validating model '", model_.name(), "' after epoch ", epoch + 1)));
  }
}

void FitLoop::add_class_weights(data::Element& batch) const {
  const auto inputs = static_cast<std::size_t>(model_.model_impl().num_inputs());
  if (model_.model_impl().num_outputs() != 1) {
    throw InvalidArgumentError("`class_weight` is only supported for Models with a single output.");
  }
  if (batch.size() == inputs + 2) {
    throw InvalidArgumentError("You cannot `class_weight` and `sample_weight` at the same time.");
  }
  if (batch.size() == inputs + 1)
    batch.push_back(weights_of_classes(batch.back(), options_.class_weight));
}

void FitLoop::warn_of_nan(int epoch, const Logs& logs) {
  if (warned_ || !std::isnan(logs.find("loss").value_or(0))) return;
  warned_ = true;
  std::cerr << "warning: the loss of model '" << model_.name() << "' is NaN in epoch " << epoch + 1
            << ". Try a smaller learning rate or clipnorm, and look for NaN in the data; the "
               "callback TerminateOnNaN stops "
               "there.\n";
}

Logs test_pass(Trainer& trainer, BatchReader& reader, const CallbackList& callbacks,
               const std::function<void(std::int64_t step)>& after_step) {
  reader.begin();
  const BatchLogs batch_logs([&] { return trainer.results(); });
  data::Element batch;
  std::int64_t step = 0;
  while (reader.next(batch)) {
    callbacks.notify([&](Callback& c) { c.on_test_batch_begin(step); });
    trainer.test(batch);
    batch_logs.renew();
    callbacks.notify([&](Callback& c) { c.on_test_batch_end(step, batch_logs); });
    after_step(++step);
  }
  if (step == 0)
    throw InvalidArgumentError("The dataset to evaluate on is empty: it gave no batch.");
  return trainer.results();
}

}  // namespace tandem::keras::internal
