#pragma once

namespace tandem {

class InferenceContext;  // tandem/graph/inference_context.h

namespace shapes {

/// The one shape that all inputs have: what any of them knows of it. Throws InvalidArgumentError
/// where two do not agree. Output 0 gets it.
void merged(InferenceContext& c);

}  // namespace shapes
}  // namespace tandem
