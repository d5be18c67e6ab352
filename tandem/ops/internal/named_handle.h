#pragma once

#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"

namespace tandem::internal {

/// The op of TensorFlow 1 that does the same: its handles are references to two strings, container
/// and name. An op without inputs makes the handle.
inline OpDecl by_name(const OpRegistration& op, const char* name, const char* inputs,
                      const char* handle = "handle: Ref(string)") {
  OpDecl decl = op.decl();
  decl.name = name;
  decl.inputs = inputs;
  if (*inputs == '\0') {
    decl.outputs = handle;
    decl.shape = [](InferenceContext& c) { c.set_output(0, PartialShape({2})); };
  }
  return decl;
}

/// Checks the shape of the handle in input 0: a scalar, or two strings.
inline void require_handle(InferenceContext& c) {
  if (c.input_dtype(0) == DType::kResource) return c.require_rank(0, 0);
  c.require_rank(0, 1);
  if (c.input(0).has_rank()) c.merge_dim(c.input(0).dim(0), 2, "handle; names");
}

}  // namespace tandem::internal
