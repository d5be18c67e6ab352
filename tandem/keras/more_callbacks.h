#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tandem/core/export.h"
#include "tandem/core/string.h"
#include "tandem/keras/callback.h"
#include "tandem/keras/progbar.h"

namespace tandem::keras::callbacks {

/// Weights are the optimizer's moving averages while the model is evaluated or saved, and training
/// goes on with the weights themselves: for optimizers with `use_ema`, without
/// ema_overwrite_frequency.
class TANDEM_EXPORT SwapEMAWeights : public Callback {
 public:
  /// `swap_on_epoch`: also at the end of each epoch, for callbacks that save the model; give it
  /// before these.
  explicit SwapEMAWeights(bool swap_on_epoch = false) : swap_on_epoch_(swap_on_epoch) {}
  void on_epoch_begin(int epoch) override;
  void on_epoch_end(int epoch, Logs& logs) override;
  void on_test_begin() override;
  void on_test_end(const Logs& logs) override;
  void on_predict_begin() override;
  void on_predict_end() override;

 private:
  void swap();
  bool swap_on_epoch_;
  bool swapped_ = false;
};

/// Draws what fit draws by itself, for fits with Verbose::kSilent.
class TANDEM_EXPORT ProgbarLogger : public Callback {
 public:
  void on_epoch_begin(int epoch) override;
  void on_train_batch_end(std::int64_t batch, const BatchLogs& logs) override;
  void on_epoch_end(int epoch, Logs& logs) override;

 private:
  std::shared_ptr<utils::Progbar> bar_;
  std::int64_t steps_ = 0;
};

struct RemoteMonitorOptions {
  String root = "http://localhost:9000";
  String path = "/publish/epoch/end/";
  String field = "data";  ///< of the form in which the logs come
  std::map<std::string, std::string> headers = {};
  bool send_as_json = false;  ///< the body is the logs' JSON itself
};
/// Sends the logs of each epoch to a server of your own by an HTTP POST. Where that fails there is
/// a warning, once.
class TANDEM_EXPORT RemoteMonitor : public Callback {
 public:
  explicit RemoteMonitor(const RemoteMonitorOptions& options = {}) : options_(options) {}
  void on_epoch_end(int epoch, Logs& logs) override;

 private:
  RemoteMonitorOptions options_;
  bool warned_ = false;
};

}  // namespace tandem::keras::callbacks
