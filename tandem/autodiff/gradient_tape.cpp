#include "tandem/autodiff/gradient_tape.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tandem/core/error.h"
#include "tandem/core/resource_handle.h"
#include "tandem/graph/op_def.h"
#include "tandem/ops/arithmetic_ops.h"
#include "tandem/ops/creation_ops.h"
#include "tandem/ops/identity_ops.h"
#include "tandem/ops/join_ops.h"
#include "tandem/ops/resource_variable_ops.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/variable.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/execute/undefined_hint.h"
#include "tandem/runtime/gradient_context.h"
#include "tandem/runtime/tensor_impl.h"
#include "tandem/runtime/thread_context.h"

namespace tandem {
namespace {

class TapeContext final : public GradientContext {
 protected:
  Tensor zeros_like(const Tensor& like) override { return tandem::zeros_like(like); }
};

struct Entry {
  const OpDef* op = nullptr;              // null: a custom gradient
  std::shared_ptr<const OpDef> op_owner;  // a tape may outlive the runtime
  std::vector<Tensor> inputs;
  AttrMap attrs;
  std::vector<Tensor> outputs;
  OpRecorder::Backward backward;
};

bool flows(DType t) { return is_differentiable(t); }

}  // namespace

class GradientTape::Recorder final : public OpRecorder,
                                     public std::enable_shared_from_this<GradientTape::Recorder> {
 public:
  explicit Recorder(const Options& options) : options_(options) {}

  bool wants(std::span<const Tensor> inputs) const override {
    return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return follows(t); });
  }

  void record(const OpDef& op, std::span<const Tensor> inputs, const AttrMap& attrs,
              std::span<const Tensor> outputs) override {
    if (op.gradient == &not_differentiable || outputs.empty()) return;
    add({&op,
         op.weak_from_this().lock(),
         {inputs.begin(), inputs.end()},
         attrs,
         {outputs.begin(), outputs.end()},
         {}});
  }

  void record_custom(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                     Backward backward) override {
    add({nullptr,
         nullptr,
         {inputs.begin(), inputs.end()},
         {},
         {outputs.begin(), outputs.end()},
         std::move(backward)});
  }

  void watch(const Tensor& t) {
    if (!flows(t.dtype())) {
      throw InvalidArgumentError(
          cat("A tape cannot watch a tensor of dtype ", t.dtype(),
              ": only floating and complex values have gradients. Use td::cast first."));
    }
    tracked_.insert(t.impl());
    kept_.push_back(t);
  }

  void reset() {
    entries_.clear();
    tracked_.clear();
    kept_.clear();
    used_ = false;
  }

  void listen(bool on) {
    auto& recorders = thread_context().recorders;
    const auto at = find_in(recorders);
    if (on && at == recorders.end()) recorders.push_back(shared_from_this());
    if (!on && at != recorders.end()) recorders.erase(at);
  }

  std::vector<Tensor> gradient(const std::vector<Tensor>& targets,
                               const std::vector<Tensor>& sources,
                               const std::vector<Tensor>& output_gradients,
                               UnconnectedGradients unconnected);

  bool persistent() const { return options_.persistent; }
  bool listening() const {
    auto& recorders = thread_context().recorders;
    return find_in(recorders) != recorders.end();
  }

 private:
  using Recorders = std::vector<std::shared_ptr<OpRecorder>>;
  Recorders::iterator find_in(Recorders& recorders) const {
    return std::find_if(recorders.begin(), recorders.end(),
                        [this](const auto& recorder) { return recorder.get() == this; });
  }
  bool follows(const Tensor& t) const {
    const TensorImpl* impl = t.impl();
    return impl &&
           ((impl->watched && options_.watch_accessed_variables) || tracked_.contains(impl));
  }

  void add(Entry entry) {
    bool any = false;
    for (const Tensor& out : entry.outputs) {
      if (!flows(out.dtype())) continue;
      tracked_.insert(out.impl());
      any = true;
    }
    if (any) entries_.push_back(std::move(entry));
  }

  Options options_;
  std::vector<Entry> entries_;
  std::unordered_set<const TensorImpl*> tracked_;
  std::vector<Tensor>
      kept_;  // watched tensors must outlive the tape: their addresses are their identity
  bool used_ = false;
};

namespace {

// Gradients that have arrived at each tensor, summed when they are asked for.
class Accumulator {
 public:
  void add(const Tensor& at, Tensor gradient) {
    arrived_[at.impl()].push_back(std::move(gradient));
  }
  bool has(const Tensor& at) const { return arrived_.contains(at.impl()); }
  Tensor sum(const Tensor& at) {
    const auto found = arrived_.find(at.impl());
    if (found == arrived_.end()) return {};
    std::vector<Tensor>& parts = found->second;
    if (parts.size() > 1) parts = {add_n(parts)};
    return parts.front();
  }

 private:
  std::unordered_map<const TensorImpl*, std::vector<Tensor>> arrived_;
};

// Which tensors a gradient has to pass: those that depend on a source.
std::unordered_set<const TensorImpl*> on_the_way(const std::vector<Entry>& entries,
                                                 const std::vector<Tensor>& sources) {
  std::unordered_set<const TensorImpl*> reached;
  for (const Tensor& s : sources) reached.insert(s.impl());
  for (const Entry& e : entries) {
    const bool any = std::any_of(e.inputs.begin(), e.inputs.end(),
                                 [&](const Tensor& t) { return reached.contains(t.impl()); });
    if (!any) continue;
    for (const Tensor& out : e.outputs) {
      if (flows(out.dtype())) reached.insert(out.impl());
    }
  }
  return reached;
}

Tensor zeros_of_variable(const Tensor& handle) {
  return zeros_like(read_variable(handle, handle.data<ResourceHandle>()[0].info().dtype));
}

void check_gradient(const Entry& entry, std::size_t i, const Tensor& gradient) {
  const Tensor& input = entry.inputs[i];
  if (input.dtype() == DType::kResource || input.dtype() == DType::kVariant) return;
  if (gradient.dtype() != input.dtype() ||
      !gradient.partial_shape().is_compatible(input.partial_shape())) {
    const std::string what =
        cat("The gradient of ", entry.op ? entry.op->name : std::string("a custom function"),
            " for input ", i, " is ", gradient.dtype(), gradient.partial_shape(),
            " but the input is ", input.dtype(), input.partial_shape(), ".");
    if (!entry.op)
      throw InvalidArgumentError(what + " Return gradients of the inputs' dtypes and shapes.");
    throw InternalError(what);
  }
}

std::vector<Tensor> input_gradients(const Entry& entry, std::vector<Tensor> output_grads,
                                    const std::unordered_set<const TensorImpl*>& way) {
  if (!entry.op) {
    std::vector<Tensor> grads = entry.backward(output_grads);
    if (grads.size() != entry.inputs.size()) {
      throw InvalidArgumentError(
          cat("A custom gradient returned ", grads.size(), " gradients for ", entry.inputs.size(),
              " inputs. Return one for each, undefined tensors where there is none."));
    }
    return grads;
  }
  if (!entry.op->gradient) {
    throw NotFoundError(cat("Op ", entry.op->name,
                            " has no gradient. Use td::stop_gradient where none is needed, or "
                            "td::custom_gradient to give one."));
  }
  TapeContext context;
  context.op_ = entry.op;
  context.attrs_ = &entry.attrs;
  context.inputs_ = entry.inputs;
  context.outputs_ = entry.outputs;
  context.grads_ = std::move(output_grads);
  for (const Tensor& in : entry.inputs)
    context.needs_.push_back(flows(in.dtype()) && way.contains(in.impl()));
  context.results_.resize(entry.inputs.size());
  entry.op->gradient(context);
  return std::move(context.results_);
}

}  // namespace

namespace {

// A source by the name that its user gave it.
std::string name_of(const Tensor& source) {
  if (source.is_symbolic()) return cat("tensor '", source.impl()->symbol().name(), "'");
  if (source.dtype() != DType::kResource) return cat("a tensor of shape ", source.partial_shape());
  const ResourceHandle& handle = source.array().data<ResourceHandle>()[0];
  return handle.empty() ? "a variable" : cat("variable '", handle.info().name, "'");
}

// What uses one of these gradients fails, and says then why it is undefined.
void explain_undefined(const std::vector<Tensor>& sources, const std::vector<Tensor>& gradients) {
  std::string names;
  int count = 0;
  constexpr int kMaxNames = 4;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (gradients[i].defined()) continue;
    if (++count > kMaxNames) continue;
    names += (count == 1 ? "" : ", ") + name_of(sources[i]);
  }
  if (count > kMaxNames) names += cat(" and ", count - kMaxNames, " more");
  undefined_tensor_hint() =
      count == 0 ? ""
                 : cat(" The last gradient that was taken is undefined for ", names,
                       ": there is no path from the loss to it. UnconnectedGradients::kZero gives "
                       "zeros there.");
}

}  // namespace

std::vector<Tensor> GradientTape::Recorder::gradient(const std::vector<Tensor>& targets,
                                                     const std::vector<Tensor>& sources,
                                                     const std::vector<Tensor>& output_gradients,
                                                     UnconnectedGradients unconnected) {
  if (used_ && !options_.persistent) {
    throw FailedPreconditionError(
        "A non-persistent GradientTape can only be used to compute one set of gradients. Make it "
        "with {.persistent = true} to use it again.");
  }
  if (!output_gradients.empty() && output_gradients.size() != targets.size()) {
    throw InvalidArgumentError(cat(output_gradients.size(), " output gradients were given for ",
                                   targets.size(), " targets."));
  }
  for (const Tensor& source : sources) {
    if (!source.defined()) {
      throw InvalidArgumentError("A source of a gradient is undefined. Give it a value first.");
    }
  }
  used_ = true;
  // This tape does not record its own gradients unless it will be asked again; outer tapes do, for
  // higher derivatives.
  if (!options_.persistent) listen(false);

  Accumulator grads;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!flows(targets[i].dtype())) {
      throw InvalidArgumentError(cat("The target of a gradient is ", targets[i].dtype(),
                                     ", but only floating and complex "
                                     "values have gradients."));
    }
    const bool given = i < output_gradients.size() && output_gradients[i].defined();
    if (given && (output_gradients[i].dtype() != targets[i].dtype() ||
                  !output_gradients[i].partial_shape().is_compatible(targets[i].partial_shape()))) {
      throw InvalidArgumentError(cat("Output gradient ", i, " is ", output_gradients[i].dtype(),
                                     output_gradients[i].partial_shape(), " but its target is ",
                                     targets[i].dtype(), targets[i].partial_shape(), "."));
    }
    grads.add(targets[i], given ? output_gradients[i] : ones_like(targets[i]));
  }
  const std::size_t count =
      entries_.size();  // gradient ops recorded by a persistent tape come after these
  const auto way = on_the_way(entries_, sources);
  for (std::size_t e = count; e-- > 0;) {
    const Entry entry = entries_[e];  // a copy: recording may move the entries
    const bool asked =
        std::any_of(entry.outputs.begin(), entry.outputs.end(),
                    [&](const Tensor& t) { return grads.has(t) && way.contains(t.impl()); });
    if (!asked) continue;
    std::vector<Tensor> output_grads;
    for (const Tensor& out : entry.outputs) output_grads.push_back(grads.sum(out));
    std::vector<Tensor> results = input_gradients(entry, std::move(output_grads), way);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined() || !way.contains(entry.inputs[i].impl())) continue;
      check_gradient(entry, i, results[i]);
      grads.add(entry.inputs[i], std::move(results[i]));
    }
  }
  std::vector<Tensor> out;
  for (const Tensor& s : sources) {
    Tensor g = grads.sum(s);
    if (!g.defined() && unconnected == UnconnectedGradients::kZero) {
      g = s.dtype() == DType::kResource ? zeros_of_variable(s) : zeros_like(s);
    }
    out.push_back(std::move(g));
  }
  explain_undefined(sources, out);
  if (!options_.persistent) entries_.clear();  // frees the values that only the tape kept
  return out;
}

GradientTape::GradientTape() : GradientTape(Options{}) {}
GradientTape::GradientTape(const Options& options)
    : recorder_(std::make_shared<Recorder>(options)) {
  recorder_->listen(true);
}
GradientTape::~GradientTape() {
  recorder_->end();  // on another thread, or while recording is stopped, it is in no list seen here
  recorder_->listen(false);
}

void GradientTape::watch(const Tensor& tensor) { recorder_->watch(tensor); }
void GradientTape::watch(const Variable& variable) { recorder_->watch(variable.handle()); }
void GradientTape::stop_recording() { recorder_->listen(false); }
void GradientTape::resume_recording() { recorder_->listen(true); }
void GradientTape::reset() { recorder_->reset(); }

GradientSource::GradientSource(const Variable& variable) : tensor_(variable.handle()) {}

std::vector<Tensor> GradientTape::gradients_by(std::span<const Tensor> targets,
                                               std::span<const GradientSource> sources,
                                               const GradientOptions& options) {
  std::vector<Tensor> tensors;
  for (const GradientSource& s : sources) tensors.push_back(s.tensor());
  std::vector<Tensor> output_gradients;
  if (options.output_gradients.defined()) output_gradients.push_back(options.output_gradients);
  return recorder_->gradient({targets.begin(), targets.end()}, tensors, output_gradients,
                             options.unconnected_gradients);
}
std::vector<Tensor> GradientTape::gradient(const std::vector<Tensor>& targets,
                                           const std::vector<Tensor>& sources,
                                           const std::vector<Tensor>& output_gradients,
                                           UnconnectedGradients unconnected) {
  return recorder_->gradient(targets, sources, output_gradients, unconnected);
}

// The gradients of each element of the target by the source or, of `batch` examples, of each
// element of an example, of all examples together.
std::vector<Tensor> GradientTape::rows_of_jacobian(const Tensor& target, const Tensor& source,
                                                   std::int64_t batch) {
  if (!recorder_->persistent()) {
    throw FailedPreconditionError(
        "A Jacobian takes one gradient for each element of the target: make the tape with "
        "{.persistent = true}.");
  }
  const Shape target_shape = target.shape();
  const std::int64_t rows = batch == 0 ? 0 : target_shape.num_elements() / batch;
  // The gradients' own ops are for outer tapes: here they would pile up row by row.
  struct Pause {
    explicit Pause(Recorder& r) : recorder(r), was_listening(r.listening()) { r.listen(false); }
    ~Pause() { recorder.listen(was_listening); }
    Recorder& recorder;
    const bool was_listening;
  };
  const Pause pause(*recorder_);
  const Tensor one = ones({}, target.dtype());
  const std::size_t size = dtype_size(target.dtype());
  std::vector<Tensor> gradients;
  for (std::int64_t row = 0; row < rows; ++row) {
    Array weights = Array::zeros(target.dtype(), target_shape);
    for (std::int64_t example = 0; example < batch; ++example) {
      std::copy_n(static_cast<const std::byte*>(one.array().raw_data()), size,
                  static_cast<std::byte*>(weights.raw_data()) +
                      static_cast<std::size_t>(example * rows + row) * size);
    }
    gradients.push_back(
        recorder_->gradient({target}, {source}, {Tensor(weights)}, UnconnectedGradients::kZero)
            .front());
  }
  return gradients;
}

Tensor GradientTape::jacobian(const Tensor& target, const GradientSource& source) {
  const std::vector<Tensor> rows = rows_of_jacobian(target, source.tensor(), 1);
  const Tensor like = !rows.empty() ? rows.front()
                      : source.tensor().dtype() == DType::kResource
                          ? zeros_of_variable(source.tensor())
                          : source.tensor();
  std::vector<std::int64_t> dims = target.shape().to_vector();
  const Shape& source_shape = like.shape();
  dims.insert(dims.end(), source_shape.dims().begin(), source_shape.dims().end());
  if (rows.empty())
    return Tensor(Array::zeros(like.dtype(), Shape(std::span<const std::int64_t>(dims))));
  return reshape(stack(rows, 0), dims);
}

Tensor GradientTape::batch_jacobian(const Tensor& target, const Tensor& source) {
  const Shape target_shape = target.shape(), source_shape = source.shape();
  if (target_shape.rank() < 1 || source_shape.rank() < 1 || target_shape[0] != source_shape[0]) {
    throw InvalidArgumentError(
        cat("batch_jacobian: the target and the source must have a first axis of the same size, "
            "the batch, but their shapes are ",
            target_shape, " and ", source_shape, "."));
  }
  const std::int64_t batch = target_shape[0];
  const std::vector<Tensor> rows = rows_of_jacobian(target, source, batch);
  std::vector<std::int64_t> dims = target_shape.to_vector();
  dims.insert(dims.end(), source_shape.dims().begin() + 1, source_shape.dims().end());
  if (rows.empty())
    return Tensor(Array::zeros(source.dtype(), Shape(std::span<const std::int64_t>(dims))));
  return reshape(stack(rows, 1), dims);
}

}  // namespace tandem
