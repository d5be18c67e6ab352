// td::image against the stored answers of tf.image (make_reference.py).

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/core/error.h"

#include "tests/reference/case.h"
#include "tests/reference/image/calls.h"
#include "tests/reference/value.h"

namespace {

using reference::Value;
using tandem::Array;
using tandem::Tensor;

Tensor tensor_of(const Value& value) {
  const auto dtype = tandem::parse_dtype(value.dtype);
  if (!dtype) throw std::runtime_error("no dtype " + value.dtype);
  Array array(*dtype, tandem::Shape(std::span<const std::int64_t>(value.shape)));
  if (*dtype == tandem::DType::kString) {
    std::copy(value.strings.begin(), value.strings.end(), array.data<std::string>());
  } else if (!value.bytes.empty()) {
    std::memcpy(array.raw_data(), value.bytes.data(), value.bytes.size());
  }
  return Tensor(std::move(array));
}

Value value_of(const Tensor& tensor) {
  Value value;
  const Array& array = tensor.array();
  value.dtype = tandem::dtype_name(array.dtype());
  value.shape = array.shape().to_vector();
  if (array.dtype() == tandem::DType::kString) {
    const auto strings = array.values<std::string>();
    value.strings.assign(strings.begin(), strings.end());
  } else if (array.num_bytes() > 0) {
    value.bytes.assign(static_cast<const char*>(array.raw_data()), array.num_bytes());
  }
  return value;
}

// Integers may be one off where the record allows it: there values were rounded from floats.
std::string compare(const Value& got, const Value& want, double tolerance) {
  if (tolerance < 1 || reference::is_floating(want.dtype)) {
    return difference(got, want,
                      {.relative = tolerance, .absolute = tolerance, .exact = tolerance == 0});
  }
  if (got.type() != want.type()) return got.type() + " instead of " + want.type();
  const auto ours = numbers(got), theirs = numbers(want);
  const double range = want.dtype == "int32" ? 400 : 1;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (std::abs(ours[i] - theirs[i]) > range) {
      return tandem::cat("element ", i, ": ", ours[i].real(), " instead of ", theirs[i].real());
    }
  }
  return "";
}

void check(const nlohmann::json& record) {
  const std::string name = record["call"];
  std::vector<Tensor> inputs;
  for (const Value& value : reference::decode_all(record["inputs"])) {
    inputs.push_back(tensor_of(value));
  }
  const bool refuses = record.contains("error");
  std::vector<Tensor> outputs;
  try {
    outputs = reference::call_image_function(name, record["args"], inputs);
  } catch (const tandem::InvalidArgumentError& error) {
    EXPECT_TRUE(refuses) << error.what();
    return;
  }
  ASSERT_FALSE(refuses) << "accepted what TensorFlow refuses";
  const std::vector<Value> wanted = reference::decode_all(record["outputs"]);
  ASSERT_EQ(outputs.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(compare(value_of(outputs[i]), wanted[i], record["tol"]), "");
  }
}

TEST(ImageFunctions, AnswerAsTensorFlow) {
  const auto lines = reference::read_lines(std::string(IMAGE_DATA) + "/functions.jsonl.gz");
  ASSERT_GT(lines.size(), 500u);
  ASSERT_EQ(lines[0]["records"].get<std::size_t>() + 1, lines.size());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    SCOPED_TRACE(tandem::cat("record ", i, ": ", lines[i]["call"].get<std::string>(), " ",
                             lines[i]["args"].dump()));
    try {
      check(lines[i]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
