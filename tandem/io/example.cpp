#include "tandem/io/example.h"

#include <type_traits>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/io/internal/wire.h"
#include "tandem/io/proto/messages.h"
#include "tandem/ops/cast_ops.h"

namespace tandem::io {
namespace {

void encode(const FeatureValues& values, proto::Feature& feature) {
  using Case = proto::Feature::Case;
  if (const auto* strings = std::get_if<std::vector<std::string>>(&values)) {
    feature.which_kind = Case::kBytesList;
    feature.bytes_list.make().value = *strings;
  } else if (const auto* floats = std::get_if<std::vector<float>>(&values)) {
    feature.which_kind = Case::kFloatList;
    feature.float_list.make().value = *floats;
  } else {
    feature.which_kind = Case::kInt64List;
    feature.int64_list.make().value = std::get<std::vector<std::int64_t>>(values);
  }
}

// False for a feature of no kind.
bool decode(const proto::Feature& feature, FeatureValues& values) {
  switch (feature.which_kind) {
    case proto::Feature::Case::kNone: return false;
    case proto::Feature::Case::kBytesList: values = feature.bytes_list->value; break;
    case proto::Feature::Case::kFloatList: values = feature.float_list->value; break;
    case proto::Feature::Case::kInt64List: values = feature.int64_list->value; break;
  }
  return true;
}

void encode(const std::map<std::string, FeatureValues>& all,
            proto::Sub<proto::Features>& features) {
  if (all.empty()) return;
  for (const auto& [key, values] : all) encode(values, features.make().feature[key]);
}

void decode(const proto::Sub<proto::Features>& features,
            std::map<std::string, FeatureValues>& all) {
  for (const auto& [key, feature] : features->feature) {
    FeatureValues values;
    if (decode(feature, values)) all[key] = std::move(values);
  }
}

template <class Message>
Message parsed(std::string_view bytes, const char* what) {
  Message message;
  try {
    proto::WireReader(bytes).read(message);
  } catch (const DataLossError& error) {
    throw DataLossError(
        cat("These ", bytes.size(), " bytes are no ", what, ": ", error.what(), "."));
  }
  return message;
}

}  // namespace

Example& Example::set(std::string key, const Tensor& values) {
  const DType dtype = values.dtype();
  if (dtype == DType::kString) return set(std::move(key), values.to_vector<std::string>());
  if (is_floating(dtype)) {
    return set(std::move(key), cast(values, DType::kFloat).to_vector<float>());
  }
  if (is_integer(dtype) || dtype == DType::kBool) {
    return set(std::move(key), cast(values, DType::kInt64).to_vector<std::int64_t>());
  }
  throw InvalidArgumentError(
      cat("A feature holds strings, floats or integers; '", key, "' is of dtype ", dtype, "."));
}

std::string Example::serialize() const {
  proto::Example message;
  encode(features, message.features);
  return proto::WireWriter::write(message);
}

Example Example::parse(std::string_view bytes) {
  Example example;
  decode(parsed<proto::Example>(bytes, "Example").features, example.features);
  return example;
}

std::string SequenceExample::serialize() const {
  proto::SequenceExample message;
  encode(context, message.context);
  for (const auto& [key, steps] : feature_lists) {
    proto::FeatureList& list = message.feature_lists.make().feature_list[key];
    for (const FeatureValues& values : steps) encode(values, list.feature.emplace_back());
  }
  return proto::WireWriter::write(message);
}

SequenceExample SequenceExample::parse(std::string_view bytes) {
  const auto message = parsed<proto::SequenceExample>(bytes, "SequenceExample");
  SequenceExample example;
  decode(message.context, example.context);
  for (const auto& [key, list] : message.feature_lists->feature_list) {
    std::vector<FeatureValues>& steps = example.feature_lists[key];
    // A step of no kind is one without values.
    for (const proto::Feature& feature : list.feature) decode(feature, steps.emplace_back());
  }
  return example;
}

}  // namespace tandem::io
