// The summary ops of TensorFlow 1: each gives a serialized Summary, for a FileWriter to add.

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_decl.h"
#include "tandem/io/internal/summary_values.h"
#include "tandem/io/internal/tensor_proto.h"
#include "tandem/io/internal/wire.h"

namespace tandem::io {
namespace {

// ---- Declarations. ----

const OpRegistration kScalarOp{{.name = "ScalarSummary",
                                .inputs = "tags: string, values: T",
                                .outputs = "summary: string",
                                .attrs = "T: reals",
                                .shape = shapes::scalar,
                                .gradient = not_differentiable,
                                .doc = "A Summary of scalars; tags and values have one shape."}};
const OpRegistration kHistogramOp{
    {.name = "HistogramSummary",
     .inputs = "tag: string, values: T",
     .outputs = "summary: string",
     .attrs = "T: reals = float",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .doc = "A Summary of a histogram. NaN and infinities are InvalidArgumentErrors."}};
const OpRegistration kImageOp{
    {.name = "ImageSummary",
     .inputs = "tag: string, tensor: T",
     .outputs = "summary: string",
     .attrs =
         "max_images: int >= 1 = 3; T: {uint8, float, half, double} = float; bad_color: tensor "
         "= uint8[255, 0, 0, 255]",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .doc = "A Summary of up to max_images images [batch, height, width, 1, 3 or 4], as PNG."}};
const OpRegistration kAudioOp{{.name = "AudioSummary",
                               .inputs = "tag: string, tensor: float",
                               .outputs = "summary: string",
                               .attrs = "sample_rate: float; max_outputs: int >= 1 = 3",
                               .shape = shapes::scalar,
                               .gradient = not_differentiable,
                               .doc = "AudioSummaryV2 with the sample rate as an attribute."}};
const OpRegistration kAudioV2Op{
    {.name = "AudioSummaryV2",
     .inputs = "tag: string, tensor: float, sample_rate: float",
     .outputs = "summary: string",
     .attrs = "max_outputs: int >= 1 = 3",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .doc = "A Summary of up to max_outputs clips [batch, frames, channels], as WAV."}};
const OpRegistration kTensorOp{
    {.name = "TensorSummary",
     .inputs = "tensor: T",
     .outputs = "summary: string",
     .attrs = "T: type; description: string = ''; labels: list(string) = []; display_name: string "
              "= ''",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .doc = "A Summary of a tensor under the node's name."}};
const OpRegistration kTensorV2Op{
    {.name = "TensorSummaryV2",
     .inputs = "tag: string, tensor: T, serialized_summary_metadata: string",
     .outputs = "summary: string",
     .attrs = "T: type",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .doc = "A Summary of a tensor, with what TensorBoard should make of it."}};
const OpRegistration kMergeOp{
    {.name = "MergeSummary",
     .inputs = "inputs: N * string",
     .outputs = "summary: string",
     .attrs = "N: int >= 1",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .doc = "One Summary of several. A tag that comes twice is an InvalidArgumentError."}};

// ---- Kernels. ----

void set_summary(KernelContext& c, const proto::Summary& summary) {
  c.allocate_output(0, Shape{}).data<std::string>()[0] = proto::WireWriter::write(summary);
}

const std::string& tag_of(const KernelContext& c, const char* name = "tag") {
  if (c.input(0).num_elements() != 1) {
    throw InvalidArgumentError(cat(name, " must be scalar, got shape ", c.input(0).shape()));
  }
  return *c.input(0).data<std::string>();
}

void scalar(KernelContext& c) {
  const Array &tags = c.input(0), &values = c.input(1);
  const bool one = tags.num_elements() == 1 && values.num_elements() == 1;
  if (!one && !(tags.shape() == values.shape())) {
    throw InvalidArgumentError(
        cat("tags and values are not the same shape: ", tags.shape(), " != ", values.shape()));
  }
  proto::Summary summary;
  const std::vector<double> numbers = to_doubles(values);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    proto::Summary::Value& value = summary.value.emplace_back();
    value.tag = tags.data<std::string>()[i];
    value.which_value = proto::Summary::Value::Case::kSimpleValue;
    value.simple_value = static_cast<float>(numbers[i]);
  }
  set_summary(c, summary);
}

void histogram(KernelContext& c) {
  proto::Summary summary;
  proto::Summary::Value& value = summary.value.emplace_back();
  value.tag = tag_of(c);
  value.which_value = proto::Summary::Value::Case::kHisto;
  value.histo.make() = exponential_histogram(value.tag, c.input(1));
  set_summary(c, summary);
}

void image(KernelContext& c) {
  proto::Summary summary;
  add_images(tag_of(c), c.input(1), c.attr<std::int64_t>("max_images"),
             *c.attr<std::shared_ptr<const Array>>("bad_color"), summary);
  set_summary(c, summary);
}

void audio(KernelContext& c) {
  proto::Summary summary;
  add_audio(tag_of(c), c.input(1), c.attr<float>("sample_rate"),
            c.attr<std::int64_t>("max_outputs"), summary);
  set_summary(c, summary);
}

void audio_v2(KernelContext& c) {
  if (c.input(2).num_elements() != 1) {
    throw InvalidArgumentError(cat("sample_rate must be scalar, got shape ", c.input(2).shape()));
  }
  proto::Summary summary;
  add_audio(tag_of(c), c.input(1), *c.input(2).data<float>(), c.attr<std::int64_t>("max_outputs"),
            summary);
  set_summary(c, summary);
}

void tensor(KernelContext& c) {
  proto::Summary summary;
  proto::Summary::Value& value = summary.value.emplace_back();
  value.node_name = c.node_name();
  value.which_value = proto::Summary::Value::Case::kTensor;
  encode_tensor(c.input(0), value.tensor.make());
  set_summary(c, summary);
}

void tensor_v2(KernelContext& c) {
  proto::Summary summary;
  proto::Summary::Value& value = summary.value.emplace_back();
  value.tag = tag_of(c);
  value.which_value = proto::Summary::Value::Case::kTensor;
  encode_tensor(c.input(1), value.tensor.make());
  if (c.input(2).num_elements() != 1) {
    throw InvalidArgumentError(
        cat("serialized_summary_metadata must be scalar, got shape ", c.input(2).shape()));
  }
  try {
    proto::WireReader(*c.input(2).data<std::string>()).read(value.metadata.make());
  } catch (const DataLossError& error) {
    throw InvalidArgumentError(
        cat("serialized_summary_metadata is no SummaryMetadata: ", error.what()));
  }
  set_summary(c, summary);
}

void merge(KernelContext& c) {
  proto::Summary merged;
  std::set<std::string> tags;
  for (int i = 0; i < c.num_inputs(); ++i) {
    for (const std::string& bytes : c.input(i).values<std::string>()) {
      proto::Summary summary;
      try {
        proto::WireReader(bytes).read(summary);
      } catch (const DataLossError& error) {
        throw InvalidArgumentError(cat("Could not parse one of the summary inputs: input ", i,
                                       " is no Summary: ", error.what()));
      }
      for (proto::Summary::Value& value : summary.value) {
        if (!value.tag.empty() && !tags.insert(value.tag).second) {
          throw InvalidArgumentError(cat("Duplicate tag ", value.tag, " found in summary inputs"));
        }
        merged.value.push_back(std::move(value));
      }
    }
  }
  set_summary(c, merged);
}

const KernelRegistration kScalarKernel{{.op = "ScalarSummary", .run = scalar}};
const KernelRegistration kHistogramKernel{{.op = "HistogramSummary", .run = histogram}};
const KernelRegistration kImageKernel{{.op = "ImageSummary", .run = image}};
const KernelRegistration kAudioKernel{{.op = "AudioSummary", .run = audio}};
const KernelRegistration kAudioV2Kernel{{.op = "AudioSummaryV2", .run = audio_v2}};
const KernelRegistration kTensorKernel{{.op = "TensorSummary", .run = tensor}};
const KernelRegistration kTensorV2Kernel{{.op = "TensorSummaryV2", .run = tensor_v2}};
const KernelRegistration kMergeKernel{{.op = "MergeSummary", .run = merge}};

}  // namespace
}  // namespace tandem::io
