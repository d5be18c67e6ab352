#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tandem/core/export.h"
#include "tandem/core/string.h"

/// Hyperparameters for TensorBoard's HParams page: each run, a folder of its own, notes the values
/// it was made with; the page compares the runs' metrics.
///
///     td::summary::hparams_config(
///         {.hparams = {{.name = "lr", .interval = {{1e-4, 1e-1}}},
///                      {.name = "optimizer", .values = {"adam", "sgd"}}},
///          .metrics = {{.tag = "epoch_accuracy", .group = "validation"}}});  // once, in logs/
///     td::summary::hparams({{"lr", 0.01}, {"optimizer", "adam"}});           // in each logs/run
namespace tandem::summary {

/// A flag, a number or a text.
class HParamValue {
 public:
  HParamValue(bool value) : value_(value) {}
  HParamValue(int value) : value_(static_cast<double>(value)) {}
  HParamValue(double value) : value_(value) {}
  HParamValue(const char* value) : value_(std::string(value)) {}
  HParamValue(std::string value) : value_(std::move(value)) {}
  const std::variant<bool, double, std::string>& value() const { return value_; }

 private:
  std::variant<bool, double, std::string> value_;
};

/// A hyperparameter, and which values it may have: an interval or a list of values of one type.
struct HParam {
  String name = {};
  std::optional<std::pair<double, double>> interval = std::nullopt;
  std::vector<HParamValue> values = {};
  String display_name = {};
  String description = {};
};

/// A scalar summary by which runs are compared.
struct HParamMetric {
  enum class Dataset { kUnknown = 0, kTraining = 1, kValidation = 2 };
  String tag = {};
  String group = {};  ///< the run's sub-folder that has it, such as "validation"
  String display_name = {};
  String description = {};
  Dataset dataset = Dataset::kUnknown;
};

struct HParamsConfig {
  std::vector<HParam> hparams = {};
  std::vector<HParamMetric> metrics = {};
  double time_created_secs = 0;  ///< 0: now
};

/// Writes what the experiment varies and measures with the thread's default writer, that of the
/// folder above the runs'. Returns whether there is one.
TANDEM_EXPORT bool hparams_config(const HParamsConfig& config);

/// Writes the values of one run with the thread's default writer. Runs of one `trial_id` are
/// repetitions, by default those of equal values.
TANDEM_EXPORT bool hparams(const std::map<std::string, HParamValue>& values,
                           const std::string& trial_id = {});

}  // namespace tandem::summary
