#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/io/event_store.h"
#include "tandem/keras/callback.h"
#include "tandem/keras/positional.h"

namespace tandem::keras::callbacks {

/// How often losses and metrics are written: "epoch", "batch", or after so many batches.
class TANDEM_EXPORT UpdateFreq {
 public:
  /// Throws InvalidArgumentError for another text.
  UpdateFreq(const char* text);
  /// Throws InvalidArgumentError for numbers below 1.
  template <std::integral T>
  UpdateFreq(T batches) : UpdateFreq(Batches{static_cast<std::int64_t>(batches)}) {}
  bool each_epoch() const { return batches_ == 0; }
  std::int64_t batches() const { return batches_; }

 private:
  struct Batches {
    std::int64_t count;
  };
  UpdateFreq(Batches batches);
  std::int64_t batches_ = 0;
};

/// Which batches of the training, counted from 1, are profiled: none (0), one, or from one to
/// another.
class TANDEM_EXPORT ProfileBatch {
 public:
  ProfileBatch(int batch) : ProfileBatch(batch, batch) {}
  /// Throws InvalidArgumentError for negative numbers, or a second one below the first.
  ProfileBatch(std::int64_t first, std::int64_t last);
  bool any() const { return last_ > 0; }
  std::int64_t first() const { return first_; }
  std::int64_t last() const { return last_; }

 private:
  std::int64_t first_;
  std::int64_t last_;
};

struct TensorBoardOptions {
  /// Metrics go to the runs "train" and "validation" below it.
  String log_dir = "logs";
  int histogram_freq = 0;               ///< epochs between histograms of weights; 0: none
  bool write_graph = true;              ///< layers, and the graph of a training step
  bool write_images = false;            ///< weights as images too, with their histograms
  bool write_steps_per_second = false;  ///< of each epoch, and of each batch that is written
  UpdateFreq update_freq = "epoch";
  ProfileBatch profile_batch = 0;
  int embeddings_freq = 0;  ///< epochs between the embeddings of Embedding layers; 0: none
  /// Files with a line for each row of an embedding, relative to log_dir: one for all layers, or by
  /// the layers' names.
  std::variant<std::string, std::map<std::string, std::string>> embeddings_metadata = {};
  /// Beyond Keras, with the histograms of weights and of the epoch's first batch: the gradients of
  /// the loss by each weight, and what each layer computed.
  bool write_gradients = false;
  bool write_activations = false;
  /// Where the summaries go instead of event files, for TensorBoard to ask this process for them
  /// (tandem/board/data_provider_server.h). Profiles and embeddings are files all the same.
  std::optional<io::EventStore> event_store = std::nullopt;
};

/// Writes what TensorBoard shows of a training: `tensorboard --logdir logs`.
///
///     model.fit(train, {.epochs = 5, .validation_data = test,
///                       .callbacks = {TensorBoard({.log_dir = "logs/run1",
///                                                  .histogram_freq = 1})}});
///
/// Names are Keras': epoch_loss, epoch_learning_rate, batch_loss, evaluation_loss_vs_iterations.
/// With an update_freq other than "epoch", summaries that layers and losses of the model write by
/// td::summary are written with the batches' metrics. A `log_dir` belongs to one callback. Throws
/// what writing files throws.
class TANDEM_EXPORT TensorBoard : public Callback {
 public:
  explicit TensorBoard(TensorBoardOptions options = {});
  template <internal::Text T>
  explicit TensorBoard(const T& log_dir, TensorBoardOptions options = {})
      : TensorBoard(internal::with_argument(std::move(options), &TensorBoardOptions::log_dir,
                                            log_dir, "log_dir")) {}
  ~TensorBoard() override;
  // Copies write to the same files.
  TensorBoard(const TensorBoard&);
  TensorBoard(TensorBoard&&) noexcept;
  TensorBoard& operator=(const TensorBoard&);
  TensorBoard& operator=(TensorBoard&&) noexcept;

  void on_train_begin() override;
  void on_train_end(const Logs& logs) override;
  void on_epoch_begin(int epoch) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void on_train_batch_begin(std::int64_t batch) override;
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override;
  void on_test_begin() override;
  void on_test_end(const Logs& logs) override;
  void on_test_batch_begin(std::int64_t batch) override;
  void on_test_batch_end(std::int64_t batch, const BatchLogs& logs) override;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::keras::callbacks
