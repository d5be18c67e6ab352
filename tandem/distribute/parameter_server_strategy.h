#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/data/dataset.h"
#include "tandem/distribute/cluster_spec.h"
#include "tandem/distribute/server.h"
#include "tandem/keras/logs.h"
#include "tandem/keras/loss.h"
#include "tandem/keras/metric.h"
#include "tandem/keras/model.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/tensor.h"

namespace tandem::distribute {

/// How variables are cut by rows, so that several servers share one (TensorFlow's partitioners of
/// tf.distribute.experimental.partitioners).
struct TANDEM_EXPORT Partitioner {
  enum Kind { kWhole, kFixedShards, kMinSize, kMaxSize };
  Kind kind = kWhole;
  std::int64_t value = 0;  ///< shards of kFixedShards, else bytes of a shard
  std::int64_t max_shards = 0;

  static Partitioner whole() { return {}; }
  static Partitioner fixed_shards(std::int64_t shards) { return {kFixedShards, shards, shards}; }
  /// As many shards as there can be of at least `bytes` each, at most `max_shards`.
  static Partitioner min_size(std::int64_t bytes, std::int64_t max_shards) {
    return {kMinSize, bytes, max_shards};
  }
  /// As few shards as there can be of at most `bytes` each; 0: any number.
  static Partitioner max_size(std::int64_t bytes, std::int64_t max_shards = 0) {
    return {kMaxSize, bytes, max_shards};
  }
  /// How many shards a variable has, 1 to its number of rows.
  std::int64_t num_shards(std::int64_t rows, std::int64_t bytes) const;
};

/// Which server holds a shard: the next one in turn, the one with the fewest bytes, or the one that
/// a hash of its name says, which stays where it is when other variables are added.
enum class ShardPlacement : std::uint8_t { kRoundRobin, kBySize, kByHash };

/// What parameter servers apply gradients with. "sgd", "momentum", "adagrad" and "adam"; formulas
/// and defaults are Keras'.
struct ServerOptimizer {
  String name = "adam";
  double learning_rate = 0.001;
  double momentum = 0.9;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;
};

/// Training with variables on parameter servers (tasks of job "ps") and steps on workers (tasks of
/// job "worker"), both of them `td server`. This process is the chief: it says what is to be done,
/// and values go between workers and servers directly. As TensorFlow's ParameterServerStrategy with
/// its ClusterCoordinator.
///
///     ParameterServerStrategy strategy({.cluster = cluster, .optimizer = {.name = "adam"}});
///     strategy.add_variables(model.trainable_weights());
///     auto step = strategy.train_function(
///         [&](std::span<const td::Tensor> batch) {
///           return std::vector{loss(batch[1], model(batch[0]))};
///         }, {images, labels});
///     for (…) losses.push_back(strategy.schedule(step, {images, labels}));
///     strategy.join();
///     float loss = strategy.fetch(losses.back())[0].item<float>();
///     strategy.read_variables();   // into the model
///
/// A closure that is scheduled counts once: where a worker is lost on the way, another one runs it,
/// and servers apply its gradients once even so. A worker that comes back is used again. Servers
/// that are lost are waited for; those with `--durable` come back with all updates that they have
/// acknowledged, others say that their state is gone, and `join` throws that.
///
/// Thread-safe.
class TANDEM_EXPORT ParameterServerStrategy {
 public:
  struct Options {
    ClusterSpec cluster = {};
    /// The tasks of now, such as `EtcdMembership::members`: asked for twice a second, on a thread
    /// of the strategy. Workers that are new get closures, and tasks that have moved to another
    /// address are called there; new parameter servers get nothing. Empty: the tasks are always
    /// those of `cluster`.
    std::function<ClusterSpec()> members = {};
    Security security = {};
    ServerOptimizer optimizer = {};
    Partitioner partitioner = {};
    ShardPlacement placement = ShardPlacement::kRoundRobin;
    /// 0: each closure's gradients are applied as they come. N: those of N closures are averaged
    /// and applied as one update; what was computed from older values is computed again.
    int replicas_to_aggregate = 0;
    /// Stale gradients are dropped instead, and the closure is done, as with TensorFlow's
    /// SyncReplicasOptimizer: with more workers than `replicas_to_aggregate` the slowest ones are
    /// backups, for which no update waits.
    bool drop_stale = false;
    /// With asynchronous updates: gradients of values that are more than so many updates old are
    /// computed again. 0: any age will do.
    std::int64_t max_staleness = 0;
    /// How many servers hold each variable. The servers' own option counts where it is higher.
    int replicas = 1;
    String worker_job = "worker";
    String server_job = "ps";
    /// A worker that has not answered for so long is taken for lost.
    std::chrono::milliseconds heartbeat_timeout{10'000};
    /// Gets a line when a worker is lost, comes back or is new. On a thread of the strategy.
    std::function<void(const std::string& line)> on_event = {};
  };
  explicit ParameterServerStrategy(Options options);
  /// Waits for nothing: what is still scheduled is given up.
  ~ParameterServerStrategy();
  ParameterServerStrategy(const ParameterServerStrategy&) = delete;
  ParameterServerStrategy& operator=(const ParameterServerStrategy&) = delete;

  const Options& options() const;

  /// Puts variables, with their values of now, on the servers; once, before the first function.
  /// Waits for the servers. A server that holds them already, of a training that was interrupted,
  /// keeps its values; `num_updates` then begins where that ended.
  ///
  /// `trainable` ones are of float or double, and gradients change them. `state` is what steps
  /// change besides: moving statistics, the states of random layers, counters
  /// (`Layer::non_trainable_variables`). What a step adds to one, or makes of its old value, is
  /// added on the server, once for each closure; of closures that are one update the mean for
  /// floating-point values, the sum for integers. A value that does not depend on the old one
  /// replaces it.
  void add_variables(const std::vector<Variable>& trainable,
                     const std::vector<Variable>& state = {});
  /// How many updates the servers had applied when they were asked last.
  std::int64_t num_updates() const;
  bool has_variables() const;
  /// Waits until each variable is on as many servers as it should be, as after a server that was
  /// lost has come back; false if that takes longer.
  bool wait_until_replicated(std::chrono::milliseconds patience) const;
  /// Assigns the servers' values to the variables.
  void read_variables();

  class Function;
  using Body = std::function<std::vector<Tensor>(std::span<const Tensor> inputs)>;
  /// Traces a step for inputs of the dtypes and shapes of `examples`. Its first result is the loss,
  /// by whose gradients the variables are updated; what it assigns to variables reaches the servers
  /// with them. What else it captures is frozen; variables that are not the strategy's must not
  /// change in it, and none within branches or loops (InvalidArgumentError).
  std::shared_ptr<const Function> train_function(const Body& body,
                                                 const std::vector<Tensor>& examples);
  /// A step that updates nothing, and must not change variables (InvalidArgumentError).
  std::shared_ptr<const Function> function(const Body& body, const std::vector<Tensor>& examples);

  /// What `fit` does; names are those of Keras' compile and fit.
  struct FitOptions {
    int epochs = 1;
    keras::Loss loss = "mean_squared_error";
    std::vector<keras::Metric> metrics = {};  ///< objects of td::keras::metrics
    /// Batches that the chief evaluates the model with after each epoch.
    data::Dataset validation_data = {};
    /// Gets the logs of an epoch, its number from 0 first.
    std::function<void(int epoch, const keras::Logs& logs)> on_epoch_end = {};
  };
  /// Trains a model, built already, on batches of inputs and labels: each batch is a closure, whose
  /// predictions the chief's metrics see. Calls `add_variables` unless that was done. In the end of
  /// each epoch all closures are done and the model has the servers' values. Returns "loss", the
  /// metrics and, with "val_" before, those of validation, for each epoch.
  ///
  ///     strategy.fit(model, train.batch(32), {.epochs = 5, .loss =
  ///     SparseCategoricalCrossentropy(),
  ///                  .metrics = {SparseCategoricalAccuracy()}, .validation_data =
  ///                  test.batch(256)});
  keras::History fit(const keras::Model& model, const data::Dataset& batches,
                     const FitOptions& options);

  class Closure;
  /// What a scheduled closure will return.
  using RemoteValue = std::shared_ptr<Closure>;
  /// Returns at once; throws what an earlier closure failed with.
  RemoteValue schedule(const std::shared_ptr<const Function>& function, std::vector<Tensor> inputs);
  /// Waits until everything scheduled is done. Throws the first failure; what was scheduled besides
  /// is then given up.
  void join();
  /// Whether everything scheduled is done.
  bool done() const;
  /// Waits for one closure's results.
  std::vector<Tensor> fetch(const RemoteValue& value);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::distribute
