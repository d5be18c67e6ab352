#include "tandem/io/hparams.h"

#include <cstdint>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/event_encoding.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/proto/messages.h"
#include "tandem/io/summary.h"
#include "tandem/ops/creation_ops.h"

namespace tandem::summary {
namespace {

namespace proto = io::proto;

enum HParamType : std::int32_t {
  kString = 1,
  kBool = 2,
  kNumber = 3
};  // as in TensorBoard's api.proto

proto::HParamValue value_of(const HParamValue& from) {
  proto::HParamValue to;
  if (const auto* flag = std::get_if<bool>(&from.value())) {
    to.which_kind = proto::HParamValue::Case::kBoolValue;
    to.bool_value = *flag;
  } else if (const auto* number = std::get_if<double>(&from.value())) {
    to.which_kind = proto::HParamValue::Case::kNumberValue;
    to.number_value = *number;
  } else {
    to.which_kind = proto::HParamValue::Case::kStringValue;
    to.string_value = std::get<std::string>(from.value());
  }
  return to;
}

HParamType type_of(const HParamValue& value) {
  constexpr HParamType kTypes[] = {kBool, kNumber, kString};
  return kTypes[value.value().index()];
}

proto::HParamInfo info_of(const HParam& hparam) {
  if (hparam.name.empty()) throw InvalidArgumentError("A hyperparameter needs a name.");
  proto::HParamInfo info;
  info.name = hparam.name;
  info.display_name = hparam.display_name;
  info.description = hparam.description;
  if (hparam.interval) {
    info.type = kNumber;
    info.which_domain = proto::HParamInfo::Case::kDomainInterval;
    info.domain_interval.make().min_value = hparam.interval->first;
    info.domain_interval.make().max_value = hparam.interval->second;
  } else if (!hparam.values.empty()) {
    info.type = type_of(hparam.values.front());
    info.which_domain = proto::HParamInfo::Case::kDomainDiscrete;
    for (const HParamValue& value : hparam.values) {
      if (type_of(value) != info.type) {
        throw InvalidArgumentError(
            cat("The values of the hyperparameter '", hparam.name, "' must be of one type."));
      }
      info.domain_discrete.make().values.push_back(value_of(value));
    }
  }
  return info;
}

proto::MetricInfo info_of(const HParamMetric& metric) {
  proto::MetricInfo info;
  info.name.make().tag = metric.tag;
  info.name.make().group = metric.group;
  info.display_name = metric.display_name;
  info.description = metric.description;
  info.dataset_type = static_cast<std::int32_t>(metric.dataset);
  return info;
}

bool write_data(std::string_view tag, const proto::HParamsPluginData& data) {
  return write(tag, zeros({0}),
               {.plugin_name = "hparams", .content = proto::WireWriter::write(data)}, 0);
}

// 64 digits that are equal for equal values: TensorBoard asks for no particular hash.
std::string digits_of(const proto::SessionStartInfo& info) {
  std::string digits;
  for (std::uint64_t round = 0; round < 4; ++round) {
    std::uint64_t hash = 14695981039346656037u + round;  // FNV-1a
    for (const char c : proto::WireWriter::write(info))
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(hash >> shift) & 15];
  }
  return digits;
}

}  // namespace

bool hparams_config(const HParamsConfig& config) {
  proto::HParamsPluginData data;
  data.which_data = proto::HParamsPluginData::Case::kExperiment;
  proto::HParamsExperiment& experiment = data.experiment.make();
  experiment.time_created_secs =
      config.time_created_secs != 0 ? config.time_created_secs : io::wall_time_now();
  for (const HParam& hparam : config.hparams) experiment.hparam_infos.push_back(info_of(hparam));
  for (const HParamMetric& metric : config.metrics)
    experiment.metric_infos.push_back(info_of(metric));
  return write_data("_hparams_/experiment", data);
}

bool hparams(const std::map<std::string, HParamValue>& values, const std::string& trial_id) {
  proto::HParamsPluginData data;
  data.which_data = proto::HParamsPluginData::Case::kSessionStartInfo;
  proto::SessionStartInfo& info = data.session_start_info.make();
  for (const auto& [name, value] : values) info.hparams[name] = value_of(value);
  info.group_name = trial_id.empty() ? digits_of(info) : trial_id;
  info.start_time_secs = io::wall_time_now();
  return write_data("_hparams_/session_start_info", data);
}

}  // namespace tandem::summary
