#include "tandem/keras/callbacks.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/model.h"

// Callbacks that watch no value in particular.

namespace tandem::keras::callbacks {

void LearningRateScheduler::on_epoch_begin(int epoch) {
  if (!schedule_) throw InvalidArgumentError("LearningRateScheduler needs a function to call.");
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

CSVLogger::CSVLogger(String filename, const CSVLoggerOptions& options)
    : filename_(std::move(filename)), options_(options) {}

void CSVLogger::on_train_begin() {
  file_.reset();
  fs::FileSystem& files = fs::file_system_of(filename_);
  write_header_ = true;
  try {
    if (options_.append && fs::exists(filename_)) {
      write_header_ = files.stat(filename_).size == 0;
      file_ = files.append_to(filename_);
    } else {
      file_ = files.create(filename_);
    }
  } catch (const NotFoundError&) {
    throw NotFoundError(
        cat("CSVLogger cannot open '", filename_, "' for writing. Check that its folder exists."));
  }
  keys_.clear();
}

void CSVLogger::on_epoch_end(int epoch, Logs& logs) {
  std::string lines;
  if (keys_.empty()) {
    for (const auto& entry : logs.entries()) keys_.push_back(entry.first);
    std::sort(keys_.begin(), keys_.end());
    if (write_header_) {
      lines += "epoch";
      for (const std::string& key : keys_) lines += options_.separator + key;
      lines += '\n';
    }
  }
  lines += std::to_string(epoch);
  for (const std::string& key : keys_) {
    const auto value = logs.find(key);
    lines += options_.separator + (value ? cat(*value) : "NA");
  }
  lines += '\n';
  file_->append(lines);
  file_->flush();
}

void CSVLogger::on_train_end(const Logs&) {
  if (file_) std::exchange(file_, nullptr)->close();
}

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
