#include "tandem/keras/internal/fit_loop.h"

#include <cmath>
#include <exception>
#include <iostream>

#include "tandem/core/error.h"
#include "tandem/keras/internal/progress.h"
#include "tandem/keras/model_impl.h"

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
      reader_(std::move(dataset), options.steps_per_epoch),
      callbacks_(options.callbacks, model_, params_of(options, verbose_, reader_.steps())),
      batch_logs_([this] { return trainer_->results(); }) {
  check(options_);
  if (validation.defined()) validation_.emplace(std::move(validation), options.validation_steps);
}

History FitLoop::run() {
  History history;
  model_.model_impl().stop_training = false;
  callbacks_.notify([](Callback& c) { c.on_train_begin(); });
  Logs logs;
  for (int epoch = options_.initial_epoch; epoch < options_.epochs; ++epoch) {
    logs = run_epoch(epoch);
    history.append(epoch, logs);
    if (model_.model_impl().stop_training) break;
  }
  callbacks_.notify([&](Callback& c) { c.on_train_end(logs); });
  return history;
}

Logs FitLoop::run_epoch(int epoch) {
  trainer_->reset();
  callbacks_.notify([&](Callback& c) { c.on_epoch_begin(epoch); });
  if (verbose_ != Verbose::kSilent && options_.epochs > 1) {
    std::cout << "Epoch " << epoch + 1 << '/' << options_.epochs << std::endl;
  }
  Progress progress(verbose_, reader_.steps());
  reader_.begin();
  data::Element batch;
  const bool weigh = !options_.class_weight.empty();
  const bool listeners = !callbacks_.empty();
  std::int64_t step = 0;
  while (!model_.model_impl().stop_training && reader_.next(batch)) {
    if (weigh) add_class_weights(batch);
    if (listeners) callbacks_.notify([&](Callback& c) { c.on_train_batch_begin(step); });
    try {
      trainer_->train(batch);
    } catch (...) {
      std::rethrow_exception(with_line(
          std::current_exception(),
          cat("in fit of model '", model_.name(), "', epoch ", epoch + 1, ", batch ", step + 1)));
    }
    if (listeners) {
      batch_logs_.renew();
      callbacks_.notify([&](Callback& c) { c.on_train_batch_end(step, batch_logs_); });
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
  callbacks_.notify([&](Callback& c) { c.on_epoch_end(epoch, logs); });
  return logs;
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
