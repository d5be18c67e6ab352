#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/fs/file_system.h"
#include "tandem/keras/callback.h"
#include "tandem/keras/positional.h"
#include "tandem/runtime/tensor.h"

namespace tandem::train {
class CheckpointManager;  // tandem/train/checkpoint_manager.h
}

namespace tandem::keras::callbacks {

// Keras' callbacks with Keras' defaults. `monitor` names an entry of the logs; `mode` is "min",
// "max" or "auto", which knows the losses and the metrics of td::keras::metrics.

/// What callbacks that watch a value have in common: which values are better.
class TANDEM_EXPORT MonitorCallback : public Callback {
 protected:
  MonitorCallback(std::string who, std::string monitor, const std::string& mode, double min_delta);
  /// The value watched, if the logs have it; else a warning, once.
  std::optional<double> watched(const Logs& logs);
  /// By at least min_delta better than `best`. Throws InvalidArgumentError if mode is "auto" and
  /// the direction of the metric is not known.
  bool improves(double value, double best);
  double worst();
  const std::string& monitor() const { return monitor_; }
  void forget_direction();

 private:
  bool smaller_is_better();
  std::string who_;
  std::string monitor_;
  std::string mode_;
  double min_delta_;
  std::optional<bool> smaller_;
  bool warned_ = false;
};

struct EarlyStoppingOptions {
  String monitor = "val_loss";
  double min_delta = 0;
  int patience = 0;  ///< epochs without improvement before it stops
  bool verbose = false;
  String mode = "auto";
  std::optional<double> baseline = std::nullopt;  ///< a value that must be improved on
  bool restore_best_weights = false;
  int start_from_epoch = 0;
};
/// Stops when a value no longer gets better.
class TANDEM_EXPORT EarlyStopping : public MonitorCallback {
 public:
  explicit EarlyStopping(const EarlyStoppingOptions& options = {});
  template <internal::Text T>
  explicit EarlyStopping(const T& monitor, const EarlyStoppingOptions& options = {})
      : EarlyStopping(
            internal::with_argument(options, &EarlyStoppingOptions::monitor, monitor, "monitor")) {}
  void on_train_begin() override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void on_train_end(const Logs& logs) override;
  /// The epoch after which it stopped; -1 if it did not.
  int stopped_epoch() const { return stopped_epoch_; }
  int best_epoch() const { return best_epoch_; }
  /// The best value; NaN before there is one.
  double best() const { return best_; }
  /// Epochs without improvement since.
  int wait() const { return wait_; }
  /// Those of the best epoch, with `restore_best_weights`.
  const std::vector<Tensor>& best_weights() const { return best_weights_; }
  void visit_state(data::StateArchive& state) override;

 private:
  EarlyStoppingOptions options_;
  int wait_ = 0;
  int stopped_epoch_ = -1;
  int best_epoch_ = 0;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  std::vector<Tensor> best_weights_;
};

struct ModelCheckpointOptions {
  String monitor = "val_loss";
  bool verbose = false;
  bool save_best_only = false;
  /// Without what the optimizer remembers.
  bool save_weights_only = false;
  String mode = "auto";
  /// With a number: after every so many batches instead of at the end of each epoch.
  std::optional<std::int64_t> save_freq = std::nullopt;
  /// A value that must be improved on.
  std::optional<double> initial_value_threshold = std::nullopt;
};
/// Saves the model, or calls a function of yours, when it is worth keeping: at the end of each
/// epoch or of those in which the value got better.
///
///     ModelCheckpoint("run/digits-{epoch:02d}-{val_loss:.2f}", {.save_best_only = true})
///     ModelCheckpoint([&](const Model& m, int epoch, const Logs&) { best = m.get_weights(); },
///                     {.save_best_only = true})
class TANDEM_EXPORT ModelCheckpoint : public MonitorCallback {
 public:
  using Save = std::function<void(const Model& model, int epoch, const Logs& logs)>;
  explicit ModelCheckpoint(Save save, const ModelCheckpointOptions& options = {});
  /// Saves under a path in which names of logs, `epoch` (the first is 1) and `batch` stand in
  /// braces, with a format as in Python: "{epoch:03d}", "{val_accuracy:.4f}". Folders that are not
  /// there are made. Without a name it is written over, which keeps the old one until the new one
  /// is whole. What is written is the whole model where the path ends in `.keras` (Model::save),
  /// else weights and optimizer, as a file of Keras (`.weights.h5`), of safetensors or a checkpoint
  /// (Model::save_weights). Throws InvalidArgumentError for a format that cannot be read or a name
  /// that is in no log.
  explicit ModelCheckpoint(String filepath, const ModelCheckpointOptions& options = {});
  void on_train_begin() override;
  void on_epoch_begin(int epoch) override { epoch_ = epoch; }
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void visit_state(data::StateArchive& state) override;
  /// The best value, with `save_best_only`.
  std::optional<double> best() const { return best_; }

 private:
  void consider(std::int64_t batch, const Logs& logs);
  void save_to_path(std::int64_t batch, const Logs& logs);
  Save save_;
  std::string filepath_;
  ModelCheckpointOptions options_;
  std::optional<double> best_;
  std::int64_t batches_ = 0;
  int epoch_ = 0;
};

struct BackupAndRestoreOptions {
  /// With a number: after every so many batches instead of at the end of each epoch.
  std::optional<std::int64_t> save_freq = std::nullopt;
  /// Keeps the backup before the last one too.
  bool double_checkpoint = false;
  /// Removes the backups when fit has come to its end.
  bool delete_checkpoint = true;
  /// Writes while training goes on (train::CheckpointOptions::enable_async).
  bool enable_async = false;
};
/// Makes a fit survive its process: started again, the same program goes on where the last backup
/// was made, at the very next element of the dataset, and ends with the same weights to the bit as
/// if nothing had happened.
///
///     model.fit(train, {.epochs = 50,
///                       .callbacks = {BackupAndRestore("run/backup", {.save_freq = 100})}});
///
/// A backup holds weights, optimizer, metrics, the place in the dataset with its buffers and random
/// state, the history, and what the other callbacks remember. Random ops of the step (dropout) draw
/// from a stream that the backup knows: with the same `set_random_seed` their numbers are not those
/// of a fit without this callback. The dataset must be one that an Iterator can save
/// (docs/data.md), and the callbacks of both runs the same. A backup that is damaged is reported,
/// and the one before it is taken.
class TANDEM_EXPORT BackupAndRestore : public Callback {
 public:
  explicit BackupAndRestore(String backup_dir, const BackupAndRestoreOptions& options = {});
  void on_train_begin() override;
  void on_train_end(const Logs& logs) override;

 private:
  void save();
  std::string backup_dir_;
  BackupAndRestoreOptions options_;
  std::shared_ptr<train::CheckpointManager> manager_;
  std::int64_t batches_ = 0;
};

/// Sets the learning rate at the beginning of each epoch to `schedule(epoch, rate so far)`, and
/// adds it to the logs.
class TANDEM_EXPORT LearningRateScheduler : public Callback {
 public:
  using Schedule = std::function<double(int epoch, double learning_rate)>;
  explicit LearningRateScheduler(Schedule schedule) : schedule_(std::move(schedule)) {}
  void on_epoch_begin(int epoch) override;
  void on_epoch_end(int epoch, Logs& logs) override;

 private:
  Schedule schedule_;
};

struct ReduceLROnPlateauOptions {
  String monitor = "val_loss";
  double factor = 0.1;
  int patience = 10;
  bool verbose = false;
  String mode = "auto";
  double min_delta = 1e-4;
  int cooldown = 0;  ///< epochs to wait after a reduction
  double min_lr = 0;
};
/// Multiplies the learning rate by `factor` when a value no longer gets better.
class TANDEM_EXPORT ReduceLROnPlateau : public MonitorCallback {
 public:
  explicit ReduceLROnPlateau(const ReduceLROnPlateauOptions& options = {});
  template <internal::Text T>
  explicit ReduceLROnPlateau(const T& monitor, const ReduceLROnPlateauOptions& options = {})
      : ReduceLROnPlateau(internal::with_argument(options, &ReduceLROnPlateauOptions::monitor,
                                                  monitor, "monitor")) {}
  void on_train_begin() override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void visit_state(data::StateArchive& state) override;
  std::optional<double> best() const { return best_; }

 private:
  ReduceLROnPlateauOptions options_;
  std::optional<double> best_;
  int wait_ = 0;
  int cooldown_ = 0;
};

struct CSVLoggerOptions {
  String separator = ",";
  bool append = false;
};
/// Writes the logs of each epoch as a line of a file, which readers see then. Throws NotFoundError
/// if it cannot be opened.
class TANDEM_EXPORT CSVLogger : public Callback {
 public:
  explicit CSVLogger(String filename, const CSVLoggerOptions& options = {});
  void on_train_begin() override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void on_train_end(const Logs& logs) override;

 private:
  std::string filename_;
  CSVLoggerOptions options_;
  std::shared_ptr<fs::WritableFile> file_;  // of copies too
  std::vector<std::string> keys_;
  bool write_header_ = true;
};

/// Stops when the loss becomes NaN or infinite. Reads the loss after each batch.
class TANDEM_EXPORT TerminateOnNaN : public Callback {
 public:
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override;
};

struct LambdaCallbackOptions {
  std::function<void(int epoch)> on_epoch_begin = {};
  std::function<void(int epoch, Logs& logs)> on_epoch_end = {};
  std::function<void()> on_train_begin = {};
  std::function<void(const Logs& logs)> on_train_end = {};
  std::function<void(std::int64_t batch)> on_train_batch_begin = {};
  std::function<void(std::int64_t batch, const BatchLogs& logs)> on_train_batch_end = {};
};
/// A callback made of functions.
class TANDEM_EXPORT LambdaCallback : public Callback {
 public:
  explicit LambdaCallback(LambdaCallbackOptions functions) : f_(std::move(functions)) {}
  void on_epoch_begin(int epoch) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void on_train_begin() override;
  void on_train_end(const Logs& logs) override;
  void on_train_batch_begin(std::int64_t batch) override;
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override;

 private:
  LambdaCallbackOptions f_;
};

}  // namespace tandem::keras::callbacks
