#include <iostream>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"
#include "tandem/keras/callbacks.h"
#include "tandem/keras/internal/path_format.h"
#include "tandem/keras/internal/state_values.h"
#include "tandem/keras/model.h"

namespace tandem::keras::callbacks {
namespace {

constexpr std::string_view kModelEnding = ".keras";

void check(const ModelCheckpointOptions& options) {
  if (options.save_freq && *options.save_freq <= 0) {
    throw InvalidArgumentError(
        cat("ModelCheckpoint: save_freq must be positive, got ", *options.save_freq, "."));
  }
}

}  // namespace

ModelCheckpoint::ModelCheckpoint(Save save, const ModelCheckpointOptions& options)
    : MonitorCallback("ModelCheckpoint", options.monitor, options.mode, 0),
      save_(std::move(save)),
      options_(options) {
  if (!save_) throw InvalidArgumentError("ModelCheckpoint needs a function to call.");
  check(options);
}

ModelCheckpoint::ModelCheckpoint(String filepath, const ModelCheckpointOptions& options)
    : MonitorCallback("ModelCheckpoint", options.monitor, options.mode, 0),
      filepath_(std::move(filepath)),
      options_(options) {
  if (filepath_.empty()) throw InvalidArgumentError("ModelCheckpoint needs a path to save to.");
  if (options.save_weights_only && filepath_.ends_with(kModelEnding)) {
    throw InvalidArgumentError(cat("ModelCheckpoint: '", filepath_,
                                   "' is a file of a whole model, but save_weights_only is set. ",
                                   "Weights alone go to a path that ends in .weights.h5, or to a ",
                                   "checkpoint."));
  }
  check(options);
}

void ModelCheckpoint::on_train_begin() {
  best_ = options_.initial_value_threshold;
  batches_ = 0;
  forget_direction();
}

void ModelCheckpoint::save_to_path(std::int64_t batch, const Logs& logs) {
  const std::string path = internal::format_path(filepath_, epoch_ + 1, batch, logs);
  if (options_.verbose) {
    std::cout << "Epoch " << epoch_ + 1 << ": saving model to " << path << std::endl;
  }
  if (const std::string folder = fs::parent_path(path); !folder.empty() && !fs::exists(folder))
    fs::file_system_of(folder).make_directories(folder);
  if (path.ends_with(kModelEnding)) {
    model().save(path);
  } else {
    model().save_weights(path, {.optimizer = !options_.save_weights_only});
  }
}

void ModelCheckpoint::consider(std::int64_t batch, const Logs& logs) {
  if (options_.save_best_only) {
    const std::optional<double> current = watched(logs);
    if (current) {
      if (best_ && !improves(*current, *best_)) {
        if (options_.verbose) {
          std::cout << "Epoch " << epoch_ + 1 << ": " << monitor() << " did not improve from "
                    << *best_ << std::endl;
        }
        return;
      }
      if (options_.verbose) {
        std::cout << "Epoch " << epoch_ + 1 << ": " << monitor() << " improved from "
                  << best_.value_or(worst()) << " to " << *current << std::endl;
      }
      best_ = current;
    }
  }
  if (save_) {
    save_(model(), epoch_, logs);
  } else {
    save_to_path(batch, logs);
  }
}

void ModelCheckpoint::on_train_batch_end(std::int64_t batch, const BatchLogs& logs) {
  if (!options_.save_freq || ++batches_ < *options_.save_freq) return;
  batches_ = 0;
  consider(batch + 1, logs.get());
}

void ModelCheckpoint::on_epoch_end(int epoch, Logs& logs) {
  epoch_ = epoch;
  if (!options_.save_freq) consider(0, logs);
}

void ModelCheckpoint::visit_state(data::StateArchive& state) {
  internal::visit(state, best_);
  state.value(batches_);
}

}  // namespace tandem::keras::callbacks
