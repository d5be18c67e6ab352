#include "tandem/keras/callbacks.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "tandem/core/error.h"
#include "tandem/keras/model.h"

// Callbacks that watch no value in particular.

namespace tandem::keras::callbacks {

void LearningRateScheduler::on_epoch_begin(int epoch) {
  const Optimizer& optimizer = model().optimizer();
  const double rate = schedule_(epoch, optimizer.learning_rate());
  if (!std::isfinite(rate)) {
    throw InvalidArgumentError(
        cat("LearningRateScheduler: the schedule gave ", rate, " for epoch ", epoch, "."));
  }
  optimizer.set_learning_rate(rate);
}

void LearningRateScheduler::on_epoch_end(int, Logs& logs) {
  logs.set("learning_rate", model().optimizer().learning_rate());
}

CSVLogger::CSVLogger(std::string filename, const CSVLoggerOptions& options)
    : filename_(std::move(filename)), options_(options) {}

void CSVLogger::on_train_begin() {
  write_header_ = true;
  if (options_.append) {
    std::ifstream before(filename_);
    write_header_ = !before || before.peek() == std::ifstream::traits_type::eof();
  }
  file_.close();
  file_.clear();
  file_.open(filename_, options_.append ? std::ios::app : std::ios::trunc);
  if (!file_) {
    throw NotFoundError(
        cat("CSVLogger cannot open '", filename_, "' for writing. Check that its folder exists."));
  }
  keys_.clear();
}

void CSVLogger::on_epoch_end(int epoch, Logs& logs) {
  if (keys_.empty()) {
    for (const auto& entry : logs.entries()) keys_.push_back(entry.first);
    std::sort(keys_.begin(), keys_.end());
    if (write_header_) {
      file_ << "epoch";
      for (const std::string& key : keys_) file_ << options_.separator << key;
      file_ << '\n';
    }
  }
  file_ << epoch;
  for (const std::string& key : keys_) {
    file_ << options_.separator;
    if (const auto value = logs.find(key)) {
      file_ << cat(*value);
    } else {
      file_ << "NA";
    }
  }
  file_ << '\n';
  file_.flush();
  if (!file_)
    throw DataLossError(cat("CSVLogger could not write to '", filename_, "'. Is the disk full?"));
}

void CSVLogger::on_train_end(const Logs&) { file_.close(); }

void TerminateOnNaN::on_train_batch_end(std::int64_t batch, const BatchLogs& logs) {
  const std::optional<double> loss = logs.get().find("loss");
  if (!loss || std::isfinite(*loss)) return;
  std::cerr << "warning: Batch " << batch << ": Invalid loss, terminating training\n";
  stop_training();
}

void LambdaCallback::on_epoch_begin(int epoch) {
  if (f_.on_epoch_begin) f_.on_epoch_begin(epoch);
}
void LambdaCallback::on_epoch_end(int epoch, Logs& logs) {
  if (f_.on_epoch_end) f_.on_epoch_end(epoch, logs);
}
void LambdaCallback::on_train_begin() {
  if (f_.on_train_begin) f_.on_train_begin();
}
void LambdaCallback::on_train_end(const Logs& logs) {
  if (f_.on_train_end) f_.on_train_end(logs);
}
void LambdaCallback::on_train_batch_begin(std::int64_t batch) {
  if (f_.on_train_batch_begin) f_.on_train_batch_begin(batch);
}
void LambdaCallback::on_train_batch_end(std::int64_t batch, const BatchLogs& logs) {
  if (f_.on_train_batch_end) f_.on_train_batch_end(batch, logs);
}

}  // namespace tandem::keras::callbacks
