// The summary ops of TensorFlow 2: a writer is a resource, and values go to it as they are
// computed.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/graph/inference_context.h"
#include "tandem/graph/kernel.h"
#include "tandem/graph/op_decl.h"
#include "tandem/io/internal/event_writer.h"
#include "tandem/io/internal/summary_values.h"
#include "tandem/io/internal/wire.h"
#include "tandem/kernels/cpu/codec/wav_encode.h"
#include "tandem/kernels/cpu/state/resource_op.h"

namespace tandem::io {
namespace {

// ---- Declarations. ----

void no_outputs(InferenceContext& c) { c.require_rank(0, 0); }

constexpr OpTraits kWrites{.stateful = true, .cpu_only = true};
// The writer keeps the value until its thread has written it.
constexpr OpTraits kKeepsValue{.stateful = true, .retains_inputs = 0b100, .cpu_only = true};

const OpRegistration kWriterOp{
    {.name = "SummaryWriter",
     .outputs = "writer: resource",
     .attrs = "shared_name: string = ''; container: string = ''",
     .shape = shapes::scalar,
     .gradient = not_differentiable,
     .traits = {.stateful = true, .cpu_only = true},
     .doc = "A handle of the summary writer named shared_name, which another op opens."}};
const OpRegistration kCreateOp{
    {.name = "CreateSummaryFileWriter",
     .inputs = "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, "
               "filename_suffix: string",
     .shape = no_outputs,
     .gradient = not_differentiable,
     .traits = kWrites,
     .doc = "Opens an event file in logdir; nothing if the writer is open."}};
const OpRegistration kFlushOp{{.name = "FlushSummaryWriter",
                               .inputs = "writer: resource",
                               .shape = no_outputs,
                               .gradient = not_differentiable,
                               .traits = kWrites,
                               .doc = "Waits until all events are in the file."}};
const OpRegistration kCloseOp{{.name = "CloseSummaryWriter",
                               .inputs = "writer: resource",
                               .shape = no_outputs,
                               .gradient = not_differentiable,
                               .traits = kWrites,
                               .doc = "Flushes and closes the file."}};
const OpRegistration kWriteOp{
    {.name = "WriteSummary",
     .inputs = "writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string",
     .attrs = "T: type",
     .shape = no_outputs,
     .gradient = not_differentiable,
     .traits = kKeepsValue,
     .doc = "Writes a tensor, with what TensorBoard should make of it."}};
const OpRegistration kRawOp{{.name = "WriteRawProtoSummary",
                             .inputs = "writer: resource, step: int64, tensor: string",
                             .shape = no_outputs,
                             .gradient = not_differentiable,
                             .traits = kWrites,
                             .doc = "Writes serialized Summaries."}};
const OpRegistration kImportOp{{.name = "ImportEvent",
                                .inputs = "writer: resource, event: string",
                                .shape = no_outputs,
                                .gradient = not_differentiable,
                                .traits = kWrites,
                                .doc = "Writes a serialized Event as it is."}};
const OpRegistration kWriteScalarOp{
    {.name = "WriteScalarSummary",
     .inputs = "writer: resource, step: int64, tag: string, value: T",
     .attrs = "T: reals",
     .shape = no_outputs,
     .gradient = not_differentiable,
     .traits = kWrites,
     .doc = "Writes a scalar."}};
const OpRegistration kWriteHistogramOp{
    {.name = "WriteHistogramSummary",
     .inputs = "writer: resource, step: int64, tag: string, values: T",
     .attrs = "T: reals = float",
     .shape = no_outputs,
     .gradient = not_differentiable,
     .traits = kWrites,
     .doc = "Writes a histogram. NaN and infinities are InvalidArgumentErrors."}};
const OpRegistration kWriteImageOp{
    {.name = "WriteImageSummary",
     .inputs = "writer: resource, step: int64, tag: string, tensor: T, bad_color: uint8",
     .attrs = "max_images: int >= 1 = 3; T: {uint8, float, half} = float",
     .shape = no_outputs,
     .gradient = not_differentiable,
     .traits = kWrites,
     .doc = "Writes up to max_images images [batch, height, width, 1, 3 or 4]."}};
const OpRegistration kWriteAudioOp{
    {.name = "WriteAudioSummary",
     .inputs = "writer: resource, step: int64, tag: string, tensor: float, sample_rate: float",
     .attrs = "max_outputs: int >= 1 = 3",
     .shape = no_outputs,
     .gradient = not_differentiable,
     .traits = kWrites,
     .doc = "Writes up to max_outputs clips [batch, frames, channels]."}};
const OpRegistration kWriteGraphOp{{.name = "WriteGraphSummary",
                                    .inputs = "writer: resource, step: int64, tensor: string",
                                    .shape = no_outputs,
                                    .gradient = not_differentiable,
                                    .traits = kWrites,
                                    .doc = "Writes a serialized GraphDef."}};

void histogram_shape(InferenceContext& c) {
  const auto count = c.attr<std::int64_t>("buckets");
  c.set_output(0, PartialShape({count, 3}));
}
const OpRegistration kBucketsOp{{.name = "_SummaryHistogram",
                                 .inputs = "values: T",
                                 .outputs = "buckets: double",
                                 .attrs = "buckets: int >= 0 = 30; T: reals",
                                 .shape = histogram_shape,
                                 .gradient = not_differentiable,
                                 .traits = {.cpu_only = true},
                                 .doc = "Rows (left, right, count) of a histogram of equal "
                                        "buckets."}};

void clips_shape(InferenceContext& c) {
  c.require_rank(0, 3);
  c.set_output(0, PartialShape({-1, 2}));
}
const OpRegistration kClipsOp{
    {.name = "_SummaryAudio",
     .inputs = "audio: float",
     .outputs = "clips: string",
     .attrs = "sample_rate: int; max_outputs: int >= 0 = 3",
     .shape = clips_shape,
     .gradient = not_differentiable,
     .traits = {.cpu_only = true},
     .doc = "Clips [batch, frames, channels] as rows (WAV file, label)."}};

// ---- Kernels. ----

constexpr const char* kType = "summary writer";

Ref<EventWriter> writer_of(const KernelContext& c) {
  return cpu::resource_of<EventWriter>(c, kType);
}

template <class T>
const T& one(const KernelContext& c, int i, const char* name) {
  if (c.input(i).num_elements() != 1) {
    throw InvalidArgumentError(cat(name, " must be scalar, got shape ", c.input(i).shape()));
  }
  return *c.input(i).data<T>();
}

PendingEvent event_of(const KernelContext& c, PendingEvent::Kind kind) {
  PendingEvent event;
  event.kind = kind;
  event.step = one<std::int64_t>(c, 1, "step");
  event.wall_time = wall_time_now();
  return event;
}

void write_values(const KernelContext& c, const proto::Summary& summary) {
  PendingEvent event = event_of(c, PendingEvent::Kind::kSummary);
  event.text = proto::WireWriter::write(summary);
  writer_of(c)->add(std::move(event));
}

void make_writer(KernelContext& c) {
  cpu::shared_resource<EventWriter>(c, kType, [] { return make_ref<EventWriter>(); });
}

void create(KernelContext& c) {
  writer_of(c)->open(
      one<std::string>(c, 1, "logdir"),
      {.max_queue = one<std::int32_t>(c, 2, "max_queue"),
       .flush_interval = std::chrono::milliseconds(one<std::int32_t>(c, 3, "flush_millis")),
       .filename_suffix = one<std::string>(c, 4, "filename_suffix")});
}

void flush(KernelContext& c) { writer_of(c)->flush(); }
void close(KernelContext& c) { writer_of(c)->close(); }

void write(KernelContext& c) {
  const Array& tensor = c.input(2);
  if (tensor.dtype() == DType::kResource || tensor.dtype() == DType::kVariant) {
    throw InvalidArgumentError(cat("A summary can't hold a ", tensor.dtype(), "."));
  }
  PendingEvent event = event_of(c, PendingEvent::Kind::kTensor);
  event.tensor = tensor;
  event.text = one<std::string>(c, 3, "tag");
  event.metadata = std::make_shared<const std::string>(one<std::string>(c, 4, "summary_metadata"));
  writer_of(c)->add(std::move(event));
}

void write_raw(KernelContext& c) {
  const Ref<EventWriter> writer = writer_of(c);
  for (const std::string& bytes : c.input(2).values<std::string>()) {
    PendingEvent event = event_of(c, PendingEvent::Kind::kSummary);
    event.text = bytes;
    writer->add(std::move(event));
  }
}

void import_event(KernelContext& c) {
  PendingEvent event;
  event.kind = PendingEvent::Kind::kEvent;
  event.text = one<std::string>(c, 1, "event");
  writer_of(c)->add(std::move(event));
}

void write_scalar(KernelContext& c) {
  one<std::int64_t>(c, 1, "step");
  proto::Summary summary;
  proto::Summary::Value& value = summary.value.emplace_back();
  value.tag = one<std::string>(c, 2, "tag");
  value.which_value = proto::Summary::Value::Case::kSimpleValue;
  const std::vector<double> numbers = to_doubles(c.input(3));
  if (numbers.size() != 1)
    throw InvalidArgumentError(cat("value must be scalar, got shape ", c.input(3).shape()));
  value.simple_value = static_cast<float>(numbers[0]);
  write_values(c, summary);
}

void write_histogram(KernelContext& c) {
  proto::Summary summary;
  proto::Summary::Value& value = summary.value.emplace_back();
  value.tag = one<std::string>(c, 2, "tag");
  value.which_value = proto::Summary::Value::Case::kHisto;
  value.histo.make() = exponential_histogram(value.tag, c.input(3));
  write_values(c, summary);
}

void write_image(KernelContext& c) {
  proto::Summary summary;
  add_images(one<std::string>(c, 2, "tag"), c.input(3), c.attr<std::int64_t>("max_images"),
             c.input(4), summary);
  write_values(c, summary);
}

void write_audio(KernelContext& c) {
  proto::Summary summary;
  add_audio(one<std::string>(c, 2, "tag"), c.input(3), one<float>(c, 4, "sample_rate"),
            c.attr<std::int64_t>("max_outputs"), summary);
  write_values(c, summary);
}

void write_graph(KernelContext& c) {
  PendingEvent event = event_of(c, PendingEvent::Kind::kGraph);
  event.text = one<std::string>(c, 2, "tensor");
  writer_of(c)->add(std::move(event));
}

void buckets(KernelContext& c) {
  c.set_output(0, histogram_buckets(c.input(0), c.attr<std::int64_t>("buckets")));
}

void clips(KernelContext& c) {
  const Array& audio = c.input(0);
  if (audio.rank() != 3)
    throw InvalidArgumentError(cat("audio must be 3-dimensional, got shape ", audio.shape()));
  const std::int64_t frames = audio.dim(1), channels = audio.dim(2);
  const std::int64_t count = std::min(audio.dim(0), c.attr<std::int64_t>("max_outputs"));
  auto* out = c.allocate_output(0, Shape{count, 2}).data<std::string>();
  for (std::int64_t i = 0; i < count; ++i) {
    out[2 * i] = cpu::encode_wav(audio.data<float>() + i * frames * channels, frames, channels,
                                 c.attr<std::int64_t>("sample_rate"));
    out[2 * i + 1].clear();
  }
}

const KernelRegistration kWriterKernel{{.op = "SummaryWriter", .run = make_writer}};
const KernelRegistration kCreateKernel{{.op = "CreateSummaryFileWriter", .run = create}};
const KernelRegistration kFlushKernel{{.op = "FlushSummaryWriter", .run = flush}};
const KernelRegistration kCloseKernel{{.op = "CloseSummaryWriter", .run = close}};
const KernelRegistration kWriteKernel{{.op = "WriteSummary", .run = write}};
const KernelRegistration kRawKernel{{.op = "WriteRawProtoSummary", .run = write_raw}};
const KernelRegistration kImportKernel{{.op = "ImportEvent", .run = import_event}};
const KernelRegistration kWriteScalarKernel{{.op = "WriteScalarSummary", .run = write_scalar}};
const KernelRegistration kWriteHistogramKernel{
    {.op = "WriteHistogramSummary", .run = write_histogram}};
const KernelRegistration kWriteImageKernel{{.op = "WriteImageSummary", .run = write_image}};
const KernelRegistration kWriteAudioKernel{{.op = "WriteAudioSummary", .run = write_audio}};
const KernelRegistration kWriteGraphKernel{{.op = "WriteGraphSummary", .run = write_graph}};
const KernelRegistration kClipsKernel{{.op = "_SummaryAudio", .run = clips}};
const KernelRegistration kBucketsKernel{{.op = "_SummaryHistogram", .run = buckets}};

}  // namespace
}  // namespace tandem::io
