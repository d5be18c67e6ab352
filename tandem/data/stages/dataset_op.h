#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tandem/core/attr.h"
#include "tandem/data/element.h"
#include "tandem/data/stages/element_program.h"

// How stages call tf.data's ops that make datasets like them (DatasetBase::as_op).

namespace tandem::data {

/// The variant that an op makes. `spec`: of the elements; ops whose attribute for their dtypes is
/// not output_types name it.
Tensor dataset_op(const char* op, const std::vector<Tensor>& inputs, const ElementSpec& spec,
                  AttrMap attrs = {}, const char* types = "output_types");

/// An op with a function of elements: its inputs are the dataset, what the function has captured,
/// and `more`.
Tensor dataset_op(const char* op, const Tensor& input, const char* function,
                  const ElementProgram& program, const std::vector<Tensor>& more,
                  const ElementSpec& spec, AttrMap attrs = {});

/// The attribute "deterministic".
std::string deterministic_attr(std::optional<bool> deterministic);

}  // namespace tandem::data
