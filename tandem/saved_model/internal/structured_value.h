#pragma once

#include <vector>

#include "tandem/io/proto/messages.h"
#include "tandem/saved_model/value.h"

namespace tandem::saved_model::internal {

/// A value of a file. Throws InvalidArgumentError if the message contradicts itself,
/// UnimplementedError for dtypes that Tandem lacks.
Value decode(const io::proto::StructuredValue& proto);
/// Throws InvalidArgumentError for tensors: a file holds specs in their place.
io::proto::StructuredValue encode(const Value& value);

/// `structure` with `tensors` in the places of its specs, in order; there must be as many.
Value pack(const Value& structure, const std::vector<Tensor>& tensors);
/// How many tensors stand for the specs of a structure.
std::size_t num_specs(const Value& structure);

}  // namespace tandem::saved_model::internal
