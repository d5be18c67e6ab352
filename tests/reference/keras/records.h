#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <tandem/runtime/tensor.h>

#include "tests/reference/value.h"

namespace reference {

using Json = nlohmann::json;

/// The folder of the stored files: TANDEM_TEST_DATA, or that of the sources.
std::string data_folder();

/// The stored tensor; undefined for null.
tandem::Tensor tensor_of(const Json& record);
std::vector<tandem::Tensor> tensors_of(const Json& records);

/// Empty if `got` has the dtype, shape and, within `tolerance` (relative, and absolute for values
/// below 1), the values of the record.
std::string compare(const tandem::Tensor& got, const Json& want, double tolerance = 2e-5);

/// Runs `check` on each record of data/keras_NAME.jsonl.gz but those of the classes (under `key`)
/// in `missing`, which td::keras does not have. What it throws is a failure of that record.
void for_each_record(const std::string& name, const std::string& key,
                     const std::set<std::string>& missing,
                     const std::function<void(const Json& record)>& check);

/// EXPECTs compare(got, want) to be empty.
void expect_equal(const tandem::Tensor& got, const Json& want, const std::string& what,
                  double tolerance = 2e-5);

}  // namespace reference
