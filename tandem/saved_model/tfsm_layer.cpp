#include "tandem/saved_model/tfsm_layer.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/keras/layer_impl.h"
#include "tandem/saved_model/load.h"

namespace tandem::keras {
namespace {

// A structure with the next of the tensors in place of each spec.
saved_model::Value packed(const saved_model::Value& structure,
                          const std::vector<saved_model::Value>& tensors, std::size_t& next) {
  using saved_model::Value;
  switch (structure.kind()) {
    case Value::Kind::kSpec: return tensors.at(next++);
    case Value::Kind::kList:
    case Value::Kind::kTuple: {
      std::vector<Value> items;
      for (const Value& item : structure.items()) items.push_back(packed(item, tensors, next));
      return structure.kind() == Value::Kind::kList ? Value::list(std::move(items))
                                                    : Value::tuple(std::move(items));
    }
    case Value::Kind::kDict: {
      std::map<std::string, Value> items;
      for (std::size_t i = 0; i < structure.items().size(); ++i)
        items[structure.keys()[i]] = packed(structure.items()[i], tensors, next);
      return Value::dict(std::move(items));
    }
    default: return structure;
  }
}

// What a layer calls: a function of a model or a signature.
class Endpoint {
 public:
  Endpoint(const saved_model::Module& module, const std::string& name) {
    const std::vector<std::string> functions = module.functions();
    const std::vector<std::string> signatures = module.signature_names();
    if (std::find(functions.begin(), functions.end(), name) != functions.end()) {
      function_ = module.function(name);
    } else if (std::find(signatures.begin(), signatures.end(), name) != signatures.end()) {
      signature_ = module.signature(name);
    } else {
      std::string known;
      for (const auto* names : {&functions, &signatures})
        for (const std::string& each : *names) known += cat(known.empty() ? "" : ", ", each);
      throw NotFoundError(cat("TFSMLayer: the model has no endpoint '", name,
                              "'. It has: ", known.empty() ? "none" : known,
                              ". Choose one with `call_endpoint`."));
    }
  }
  std::vector<Tensor> operator()(std::span<const Tensor> inputs) const {
    if (function_.defined()) return call_function({inputs.begin(), inputs.end()});
    const std::vector<saved_model::TensorSpec>& specs = signature_.inputs();
    if (specs.size() != inputs.size()) {
      throw InvalidArgumentError(
          cat("The signature takes ", specs.size(), " tensors, got ", inputs.size(), "."));
    }
    std::map<std::string, Tensor> named;
    for (std::size_t i = 0; i < inputs.size(); ++i) named[specs[i].name] = inputs[i];
    std::vector<Tensor> outputs;
    for (const auto& [name, value] : signature_(named))
      for (const Tensor& tensor : value.tensors()) outputs.push_back(tensor);
    return outputs;
  }

 private:
  // Several inputs are what a trace takes: the list or dictionary of Keras' exports, or arguments.
  std::vector<Tensor> call_function(const std::vector<saved_model::Value>& inputs) const {
    if (inputs.size() > 1) {
      for (std::size_t trace = 0; trace < function_.num_traces(); ++trace) {
        const saved_model::Value& positional = function_.inputs(trace)[0];
        if (positional.specs().size() != inputs.size()) continue;
        std::size_t next = 0;
        const saved_model::Value args = packed(positional, inputs, next);
        try {
          return function_.call(args.items()).tensors();
        } catch (const InvalidArgumentError&) {
          // Another trace may take them; else the call below says what they are.
        }
      }
    }
    return function_.call(inputs).tensors();
  }

  saved_model::Function function_;
  saved_model::Signature signature_;
};

class TfsmImpl final : public LayerImpl {
 public:
  TfsmImpl(const String& filepath, const TFSMLayerOptions& o)
      : LayerImpl("TFSMLayer", {.name = o.name, .trainable = o.trainable}),
        filepath_(filepath),
        options_(o),
        module_(saved_model::load(filepath)),
        call_(module_, o.call_endpoint),
        training_call_(o.call_training_endpoint.empty()
                           ? call_
                           : Endpoint(module_, o.call_training_endpoint)) {
    // Names of weights have no slashes, as in Keras.
    for (const Variable& variable : module_.variables()) {
      std::string name = variable.name();
      std::replace(name.begin(), name.end(), '/', '_');
      add_existing_weight(variable, name);
    }
    without_weights();
    keep_dtypes();
  }
  void describe(Config& config) const override {
    config.set("filepath", filepath_).set("call_endpoint", options_.call_endpoint);
    config.set("call_training_endpoint", options_.call_training_endpoint);
  }
  std::vector<Tensor> call_many(std::span<const Tensor> inputs,
                                const CallOptions& options) override {
    return options.is_training() ? training_call_(inputs) : call_(inputs);
  }

 private:
  std::string filepath_;
  TFSMLayerOptions options_;
  saved_model::Module module_;
  Endpoint call_;
  Endpoint training_call_;
};

}  // namespace

TFSMLayer::TFSMLayer(const String& filepath, const TFSMLayerOptions& options)
    : Layer(make_layer<TfsmImpl>(filepath, options)) {}

}  // namespace tandem::keras
