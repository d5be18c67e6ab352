#include "tandem/io/json_example.h"

#include <cmath>
#include <limits>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/fs/paths.h"
#include "tandem/io/example.h"
#include "tandem/io/graph_export.h"
#include "tandem/ops/host_ops.h"

namespace tandem::io {
namespace {

using Json = nlohmann::json;

[[noreturn]] void fail(const std::string& why) { throw InvalidArgumentError(why); }

// Standard and URL-safe letters, with or without padding.
std::string from_base64(const std::string& text) {
  std::string out;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    unsigned value = 0;
    if (c >= 'A' && c <= 'Z') {
      value = static_cast<unsigned>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      value = static_cast<unsigned>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      value = static_cast<unsigned>(c - '0') + 52;
    } else if (c == '+' || c == '-') {
      value = 62;
    } else if (c == '/' || c == '_') {
      value = 63;
    } else {
      fail(cat("\"", text, "\" is no base64"));
    }
    bits = bits << 6 | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>(bits >> count & 0xff));
    }
  }
  return out;
}

std::int64_t as_int64(const Json& value) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    fail(cat(value.dump(), " is too large for an int64"));
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()) &&
      std::abs(value.get<double>()) < 9e15)
    return static_cast<std::int64_t>(value.get<double>());
  if (value.is_string()) {
    try {
      std::size_t end = 0;
      const std::string text = value.get<std::string>();
      const std::int64_t number = std::stoll(text, &end);
      if (end == text.size()) return number;
    } catch (const std::logic_error&) {
    }
  }
  fail(cat(value.dump(), " is no int64"));
}

float as_float(const Json& value) {
  if (value.is_number()) return value.get<float>();
  if (value == "NaN") return std::numeric_limits<float>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<float>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<float>::infinity();
  fail(cat(value.dump(), " is no float"));
}

const Json& member(const Json& object, const char* camel, const char* snake) {
  static const Json none;
  if (!object.is_object()) fail(cat("expected an object, got ", object.dump()));
  if (const auto found = object.find(camel); found != object.end()) return *found;
  if (const auto found = object.find(snake); found != object.end()) return *found;
  return none;
}

template <class T, class F>
std::vector<T> values_of(const Json& list, const F& convert) {
  std::vector<T> out;
  const Json& values = member(list, "value", "value");
  if (values.is_null()) return out;
  if (!values.is_array()) fail(cat("expected a list of values, got ", values.dump()));
  for (const Json& value : values) out.push_back(convert(value));
  return out;
}

Example example_of(const Json& json) {
  Example example;
  const Json& features = member(json, "features", "features");
  if (features.is_null()) return example;
  const Json& map = member(features, "feature", "feature");
  if (map.is_null()) return example;
  if (!map.is_object()) fail(cat("expected features by name, got ", map.dump()));
  for (const auto& [name, feature] : map.items()) {
    if (const Json& list = member(feature, "bytesList", "bytes_list"); !list.is_null()) {
      example.set(name, values_of<std::string>(list, [](const Json& v) {
                    if (!v.is_string()) fail(cat(v.dump(), " is no base64"));
                    return from_base64(v.get<std::string>());
                  }));
    } else if (const Json& floats = member(feature, "floatList", "float_list"); !floats.is_null()) {
      example.set(name, values_of<float>(floats, as_float));
    } else if (const Json& ints = member(feature, "int64List", "int64_list"); !ints.is_null()) {
      example.set(name, values_of<std::int64_t>(ints, as_int64));
    }
  }
  return example;
}

}  // namespace

Tensor decode_json_example(const Tensor& json_examples) {
  std::vector<std::string> out;
  for (const std::string& text : json_examples.data<std::string>()) {
    try {
      out.push_back(example_of(Json::parse(text)).serialize());
    } catch (const Json::exception& error) {
      fail(cat("Error while parsing JSON (string ", out.size(), "): ", error.what()));
    } catch (const InvalidArgumentError& error) {
      fail(cat("Error while parsing JSON (string ", out.size(), "): ", error.what()));
    }
  }
  return Tensor::from(out, json_examples.shape());
}

Variable match_filenames_once(const String& pattern, const String& name) {
  return Variable([pattern] { return matching_files(Tensor(pattern)); },
                  {.trainable = false, .name = name});
}

std::string write_graph(const ConcreteFunction& function, const String& logdir, const String& name,
                        bool as_text) {
  fs::file_system_of(logdir).make_directories(logdir);
  const std::string path = fs::join_path(logdir, name);
  const GraphFormat format = as_text ? GraphFormat::kText : GraphFormat::kBinary;
  fs::write_file(path, export_graph_def(function, {.format = format}).bytes);
  return path;
}

}  // namespace tandem::io
