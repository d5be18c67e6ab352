#include "tandem/ops/host_ops.h"

#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/internal/float_text.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/op_decl.h"
#include "tandem/ops/internal/known.h"
#include "tandem/ops/string_ops.h"
#include "tandem/runtime/dispatch.h"
#include "tandem/runtime/gradient_context.h"

namespace tandem {
namespace {

void scalar_condition(InferenceContext& c) { c.require_rank(0, 0); }

void file_shape(InferenceContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.require_rank(i, 0);
  if (c.num_outputs() == 1) c.set_output(0, PartialShape::scalar());
}

void paths_shape(InferenceContext& c) {
  if (c.input(0).rank() > 1) c.fail("pattern must be a scalar or a vector");
  c.set_output(0, PartialShape({PartialShape::kUnknown}));
}

void print_grad(GradientContext& g) { g.set(0, g.grad()); }

void check_grad(GradientContext& g) {
  g.set(0, internal::op1(
               "CheckNumericsV2", {g.grad()},
               {{"message", cat("Not a number (NaN) or infinity (Inf) values detected in the "
                                "gradient. ",
                                g.attr<std::string>("message"))}}));
}

const OpRegistration kAssert{{.name = "Assert",
                              .inputs = "condition: bool, data: T",
                              .attrs = "T: list(type) >= 1; summarize: int = 3",
                              .shape = scalar_condition,
                              .gradient = not_differentiable,
                              .traits = {.stateful = true, .host_inputs = ~0u},
                              .doc = "Fails, naming the data, unless the condition holds."}};
const OpRegistration kPrint{
    {.name = "Print",
     .inputs = "input: T, data: U",
     .outputs = "output: T",
     .attrs = "T: type; U: list(type) >= 0; message: string = ''; "
              "first_n: int = -1; summarize: int = 3",
     .shape = shapes::unchanged,
     .gradient = print_grad,
     .traits = {.stateful = true, .keeps_state = true, .shares_memory = 0b1, .cpu_only = true},
     .doc = "Its first input; prints the others to the terminal."}};
const OpRegistration kPrintV2{{.name = "PrintV2",
                               .inputs = "input: string",
                               .attrs = "output_stream: string = 'stderr'; end: string = '\n'",
                               .shape = scalar_condition,
                               .gradient = not_differentiable,
                               .traits = {.stateful = true},
                               .doc = "Prints a string."}};
const OpRegistration kTimestamp{{.name = "Timestamp",
                                 .outputs = "ts: double",
                                 .shape = shapes::scalar,
                                 .gradient = not_differentiable,
                                 .traits = {.stateful = true, .cpu_only = true},
                                 .doc = "Seconds since 1970."}};
const OpRegistration kCheck{{.name = "CheckNumericsV2",
                             .inputs = "tensor: T",
                             .outputs = "output: T",
                             .attrs = "T: {bfloat16, half, float, double}; message: string",
                             .shape = shapes::unchanged,
                             .gradient = check_grad,
                             .traits = {.stateful = true, .shares_memory = 0b1},
                             .doc = "Its input; fails if that holds NaN or infinities, which it "
                                    "distinguishes."}};
const OpRegistration kGuarantee{{.name = "GuaranteeConst",
                                 .inputs = "input: T",
                                 .outputs = "output: T",
                                 .attrs = "T: type",
                                 .shape = shapes::unchanged,
                                 .traits = {.stateful = true, .shares_memory = 0b1},
                                 .doc = "Its input, of which the caller says that it never "
                                        "changes."}};
const OpRegistration kDeepCopy{{.name = "DeepCopy",
                                .inputs = "x: T",
                                .outputs = "y: T",
                                .attrs = "T: type",
                                .shape = shapes::unchanged,
                                .traits = {.stateful = true},
                                .doc = "Its input in memory of its own."}};

OpDecl rows_op(const char* name, const char* doc) {
  return {.name = name,
          .inputs = "x: T, i: int32, v: T",
          .outputs = "y: T",
          .attrs = "T: type",
          .shape = shapes::unchanged,
          .traits = {.may_reuse = 0b1},
          .doc = doc};
}
const OpRegistration kUpdate(rows_op("InplaceUpdate", "x with rows i set to those of v."));
const OpRegistration kAdd(rows_op("InplaceAdd", "x with the rows of v added to rows i."));
const OpRegistration kSub(rows_op("InplaceSub", "x with the rows of v subtracted from rows i."));

const OpRegistration kReadFile{{.name = "ReadFile",
                                .inputs = "filename: string",
                                .outputs = "contents: string",
                                .shape = file_shape,
                                .gradient = not_differentiable,
                                .traits = {.stateful = true, .reads_only = true},
                                .doc = "The bytes of a file."}};
const OpRegistration kWriteFile{{.name = "WriteFile",
                                 .inputs = "filename: string, contents: string",
                                 .shape = file_shape,
                                 .gradient = not_differentiable,
                                 .traits = {.stateful = true},
                                 .doc = "Writes a file."}};
const OpRegistration kMatching{{.name = "MatchingFiles",
                                .inputs = "pattern: string",
                                .outputs = "filenames: string",
                                .shape = paths_shape,
                                .gradient = not_differentiable,
                                .traits = {.stateful = true, .reads_only = true},
                                .doc = "The paths that patterns match, sorted."}};

}  // namespace

void print(const std::vector<Tensor>& inputs, const PrintOptions& options) {
  internal::PrintedArguments arguments(options);
  for (const Tensor& input : inputs) arguments.add(input);
  arguments.print();
}

namespace internal {

namespace {

// The texts with a placeholder between each two.
std::string join_with(const std::string& placeholder, const std::vector<std::string>& texts) {
  std::string text = texts.front();
  for (std::size_t i = 1; i < texts.size(); ++i) text += placeholder + texts[i];
  return text;
}

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; ++count)
    at = text.find(part, at + part.size());
  return count;
}

}  // namespace

void PrintedArguments::begin_argument() {
  if (arguments_++ > 0) append_text(options_.sep);
}

void PrintedArguments::append_tensor(Tensor value) {
  tensors_.push_back(std::move(value));
  texts_.emplace_back();
}

std::string PrintedArguments::number_text(double value) {
  return float_scalar_text(DType::kDouble, value);
}
std::string PrintedArguments::number_text(float value) {
  return float_scalar_text(DType::kFloat, value);
}

void PrintedArguments::print() const {
  Tensor text;
  // A string by itself is printed as it is, without the quotes that it has beside other values.
  if (arguments_ == 1 && tensors_.size() == 1 && tensors_[0].dtype() == DType::kString &&
      tensors_[0].rank() == 0) {
    text = tensors_[0];
  } else if (tensors_.empty()) {
    text = Tensor(texts_[0]);
  } else {
    std::string placeholder = "{}";  // made longer until no text holds it
    while (count_of(placeholder, join_with(placeholder, texts_)) != tensors_.size())
      placeholder.insert(1, "_");
    text =
        strings::format(join_with(placeholder, texts_), tensors_, placeholder, options_.summarize);
  }
  call(kPrintV2, {std::move(text)},
       {{"output_stream", options_.output_stream}, {"end", options_.end}});
}

}  // namespace internal

Tensor timestamp() { return call1(kTimestamp, std::initializer_list<Tensor>{}); }

namespace debugging {
void assert_true(Tensor condition, const std::vector<Tensor>& data, std::int64_t summarize) {
  std::vector<Tensor> inputs = {std::move(condition)};
  inputs.insert(inputs.end(), data.begin(), data.end());
  if (data.empty()) inputs.emplace_back("");
  call(kAssert, inputs, {{"summarize", summarize}});
}
}  // namespace debugging

namespace io {
Tensor read_file(Tensor filename) { return call1(kReadFile, {std::move(filename)}); }
void write_file(Tensor filename, Tensor contents) {
  call(kWriteFile, {std::move(filename), std::move(contents)});
}
Tensor matching_files(Tensor pattern) { return call1(kMatching, {std::move(pattern)}); }
}  // namespace io

}  // namespace tandem
