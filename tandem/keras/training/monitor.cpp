#include <cmath>
#include <iostream>

#include "tandem/core/error.h"
#include "tandem/keras/callbacks.h"
#include "tandem/keras/internal/state_values.h"
#include "tandem/keras/internal/trainer.h"
#include "tandem/keras/model.h"
#include "tandem/keras/model_impl.h"

// Callbacks that watch a value.

namespace tandem::keras::callbacks {

MonitorCallback::MonitorCallback(std::string who, std::string monitor, const std::string& mode,
                                 double min_delta)
    : who_(std::move(who)),
      monitor_(std::move(monitor)),
      mode_(mode),
      min_delta_(std::abs(min_delta)) {
  if (mode_ != "auto" && mode_ != "min" && mode_ != "max") {
    throw InvalidArgumentError(
        cat(who_, ": mode must be 'auto', 'min' or 'max', got '", mode_, "'."));
  }
}

std::optional<double> MonitorCallback::watched(const Logs& logs) {
  const std::optional<double> value = logs.find(monitor_);
  if (!value && !warned_) {
    warned_ = true;
    std::cerr << "warning: " << who_ << " watches `" << monitor_
              << "` which is not available. Available are: " << logs << "\n";
  }
  return value;
}

void MonitorCallback::forget_direction() { smaller_.reset(); }

bool MonitorCallback::smaller_is_better() {
  if (smaller_) return *smaller_;
  if (mode_ != "auto") return *(smaller_ = mode_ == "min");
  const std::string name = monitor_.rfind("val_", 0) == 0 ? monitor_.substr(4) : monitor_;
  const auto& trainer = model().model_impl().trainer();
  const MetricImpl* metric = trainer ? trainer->find_metric(name) : nullptr;
  const Direction direction = metric ? metric->direction() : Direction::kUnknown;
  if (direction == Direction::kUnknown) {
    throw InvalidArgumentError(
        cat(who_, " callback received monitor=", monitor_,
            ", but it isn't known whether that "
            "metric should be maximized or minimized. Pass .mode = \"max\" or .mode = \"min\"."));
  }
  return *(smaller_ = direction == Direction::kDown);
}

bool MonitorCallback::improves(double value, double best) {
  return smaller_is_better() ? value + min_delta_ < best : value - min_delta_ > best;
}

double MonitorCallback::worst() {
  const double infinity = std::numeric_limits<double>::infinity();
  return smaller_is_better() ? infinity : -infinity;
}

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options)
    : MonitorCallback("EarlyStopping", options.monitor, options.mode, options.min_delta),
      options_(options) {}

void EarlyStopping::on_train_begin() {
  wait_ = 0;
  stopped_epoch_ = -1;
  best_epoch_ = 0;
  best_weights_.clear();
  forget_direction();
  best_ = std::numeric_limits<double>::quiet_NaN();
}

void EarlyStopping::on_epoch_end(int epoch, Logs& logs) {
  const std::optional<double> current = watched(logs);
  if (!current || epoch < options_.start_from_epoch) return;
  if (std::isnan(best_)) best_ = worst();
  if (options_.restore_best_weights && best_weights_.empty()) best_weights_ = model().get_weights();
  ++wait_;
  if (improves(*current, best_)) {
    best_ = *current;
    best_epoch_ = epoch;
    if (options_.restore_best_weights) best_weights_ = model().get_weights();
    if (!options_.baseline || improves(*current, *options_.baseline)) wait_ = 0;
    return;
  }
  if (wait_ >= options_.patience && epoch > 0) {
    stopped_epoch_ = epoch;
    stop_training();
  }
}

void EarlyStopping::on_train_end(const Logs&) {
  if (options_.verbose && stopped_epoch_ >= 0) {
    std::cout << "Epoch " << stopped_epoch_ + 1 << ": early stopping\n";
  }
  if (!options_.restore_best_weights || best_weights_.empty()) return;
  if (options_.verbose) {
    std::cout << "Restoring model weights from the end of the best epoch: " << best_epoch_ + 1
              << ".\n";
  }
  model().set_weights(best_weights_);
}

ReduceLROnPlateau::ReduceLROnPlateau(const ReduceLROnPlateauOptions& options)
    : MonitorCallback("ReduceLROnPlateau", options.monitor, options.mode, options.min_delta),
      options_(options) {
  if (!(options.factor < 1)) {
    throw InvalidArgumentError(
        cat("ReduceLROnPlateau does not support a factor >= 1.0. Got ", options.factor, "."));
  }
}

void ReduceLROnPlateau::on_train_begin() {
  best_.reset();
  wait_ = 0;
  cooldown_ = 0;
  forget_direction();
}

void ReduceLROnPlateau::on_epoch_end(int epoch, Logs& logs) {
  const Optimizer& optimizer = model().optimizer();
  const double rate = optimizer.learning_rate();
  logs.set("learning_rate", rate);
  const std::optional<double> current = watched(logs);
  if (!current) return;
  if (cooldown_ > 0) {
    --cooldown_;
    wait_ = 0;
  }
  if (!best_ || improves(*current, *best_)) {
    best_ = current;
    wait_ = 0;
  } else if (cooldown_ == 0 && ++wait_ >= options_.patience && rate > options_.min_lr) {
    const double reduced = std::max(rate * options_.factor, options_.min_lr);
    optimizer.set_learning_rate(reduced);
    if (options_.verbose) {
      std::cout << "Epoch " << epoch + 1 << ": ReduceLROnPlateau reducing learning rate to "
                << reduced << ".\n";
    }
    cooldown_ = options_.cooldown;
    wait_ = 0;
  }
}

void ReduceLROnPlateau::visit_state(data::StateArchive& state) {
  internal::visit(state, best_);
  internal::visit(state, wait_);
  internal::visit(state, cooldown_);
}

void EarlyStopping::visit_state(data::StateArchive& state) {
  internal::visit(state, best_);
  internal::visit(state, wait_);
  internal::visit(state, stopped_epoch_);
  internal::visit(state, best_epoch_);
  state.value(best_weights_);
}

}  // namespace tandem::keras::callbacks
