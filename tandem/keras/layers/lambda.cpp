#include "tandem/keras/layers/lambda.h"

#include "tandem/keras/layer_impl.h"

namespace tandem::keras {
namespace {

class LambdaImpl final : public LayerImpl {
 public:
  LambdaImpl(Lambda::FunctionOfSeveral function, const LambdaOptions& o)
      : LayerImpl("Lambda", {.name = o.name, .dtype = o.dtype}), function_(std::move(function)) {
    without_weights();
  }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs, const CallOptions&) override {
    return {function_(std::vector<Tensor>(inputs.begin(), inputs.end()))};
  }

 private:
  Lambda::FunctionOfSeveral function_;
};

}  // namespace

Lambda Lambda::from_one(Function function, const LambdaOptions& options) {
  return from_several([function = std::move(function)](
                          const std::vector<Tensor>& inputs) { return function(inputs.at(0)); },
                      options);
}
Lambda Lambda::from_several(FunctionOfSeveral function, const LambdaOptions& options) {
  return Lambda(make_layer<LambdaImpl>(std::move(function), options));
}

}  // namespace tandem::keras
