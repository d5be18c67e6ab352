#include "tests/reference/keras/records.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>

#include <gtest/gtest.h>

#include <tandem/core/error.h>
#include <tandem/tandem.h>

#include "tests/reference/case.h"

namespace reference {
namespace {

tandem::DType dtype_of_name(const std::string& name) {
  if (name == "float") return tandem::float32;
  if (name == "double") return tandem::float64;
  if (name == "bfloat16") return tandem::bfloat16;
  if (name == "half") return tandem::float16;
  if (name == "int32") return tandem::int32;
  if (name == "int64") return tandem::int64;
  if (name == "bool") return tandem::DType::kBool;
  throw std::runtime_error("the Keras records have no " + name);
}

Value value_of(const tandem::Tensor& t) {
  Value value;
  value.dtype = tandem::cat(t.dtype());
  value.shape = t.shape().to_vector();
  const auto* bytes = static_cast<const char*>(t.array().raw_data());
  value.bytes.assign(bytes, bytes + t.array().num_bytes());
  return value;
}

}  // namespace

std::string data_folder() {
  const char* const given = std::getenv("TANDEM_TEST_DATA");
  return given != nullptr ? given : KERAS_DATA;
}

tandem::Tensor tensor_of(const Json& record) {
  if (record.is_null()) return {};
  const Value value = decode(record);
  tandem::Array array(dtype_of_name(value.dtype),
                      tandem::Shape(std::span<const std::int64_t>(value.shape)));
  std::memcpy(array.raw_data(), value.bytes.data(), value.bytes.size());
  return array;
}

std::vector<tandem::Tensor> tensors_of(const Json& records) {
  std::vector<tandem::Tensor> tensors;
  for (const Json& record : records) tensors.push_back(tensor_of(record));
  return tensors;
}

std::string compare(const tandem::Tensor& got, const Json& want, double tolerance) {
  if (want.is_null()) return got.defined() ? "a value where Keras has none" : "";
  if (!got.defined()) return "nothing where Keras has a value";
  return difference(value_of(got), decode(want), {.relative = tolerance, .absolute = tolerance});
}

void expect_equal(const tandem::Tensor& got, const Json& want, const std::string& what,
                  double tolerance) {
  EXPECT_EQ(compare(got, want, tolerance), "") << what;
}

void for_each_record(const std::string& name, const std::string& key,
                     const std::set<std::string>& missing,
                     const std::function<void(const Json& record)>& check) {
  const std::vector<Json> lines = read_lines(data_folder() + "/keras_" + name + ".jsonl.gz");
  std::set<std::string> left_out;
  std::size_t checked = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Json& record = lines[i];
    if (!record.contains(key)) continue;
    const std::string what = record.at(key).get<std::string>();
    if (missing.contains(what)) {
      left_out.insert(what);
      continue;
    }
    SCOPED_TRACE(record.value("line", what));
    ++checked;
    try {
      check(record);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_EQ(left_out, missing) << "what is named missing must occur in the records";
  EXPECT_GT(checked, 0u);
}

}  // namespace reference
