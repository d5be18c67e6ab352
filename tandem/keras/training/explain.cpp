#include "tandem/keras/explain.h"

#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/model_impl.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/runtime/trace.h"

namespace tandem {
namespace {

constexpr std::int64_t kOpenSize = 16;

}  // namespace

Explanation explain(const keras::Model& model, const keras::TensorList& x,
                    const ExplainOptions& options) {
  std::vector<DType> dtypes;
  std::vector<PartialShape> shapes;
  for (const Tensor& input : x.tensors()) {
    dtypes.push_back(input.dtype());
    shapes.push_back(input.partial_shape());
  }
  const TraceScope outside(nullptr);
  const ConcreteFunction forward =
      trace_function("predict", dtypes, shapes, [&](std::span<const Tensor> inputs) {
        return model.model_impl().run(std::vector<Tensor>(inputs.begin(), inputs.end()),
                                      keras::CallOptions{.training = false});
      });
  Explanation explanation = explain_call(forward, x.tensors(), options);
  explanation.title = cat("model '", model.name(), "'");
  return explanation;
}

Explanation explain(const keras::Model& model, std::int64_t batch_size,
                    const ExplainOptions& options) {
  const std::vector<keras::KerasTensor> inputs = model.model_impl().input_tensors();
  if (inputs.empty()) {
    throw FailedPreconditionError(
        cat("td::explain: the inputs of model '", model.name(),
            "' are not known. Build it, or explain it with a batch: td::explain(model, x)."));
  }
  const TraceScope eager(nullptr);
  std::vector<Tensor> batch;
  for (const keras::KerasTensor& input : inputs) {
    std::vector<std::int64_t> dims(input.shape().dims().begin(), input.shape().dims().end());
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] < 0) dims[i] = i == 0 ? batch_size : kOpenSize;
    }
    batch.push_back(zeros(dims, input.dtype()));
  }
  return explain(model, keras::TensorList(std::move(batch)), options);
}

}  // namespace tandem
