#include "tandem/keras/directory_datasets.h"

#include <algorithm>
#include <random>
#include <string_view>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/keras/internal/image_dataset_checks.h"
#include "tandem/keras/internal/labelled_files.h"
#include "tandem/ops/audio_ops.h"
#include "tandem/ops/gather_ops.h"
#include "tandem/ops/host_ops.h"
#include "tandem/ops/operators.h"
#include "tandem/ops/shape_ops.h"
#include "tandem/ops/string_ops.h"

namespace tandem::keras::utils {
namespace {

using data::Dataset;

constexpr std::string_view kTextEndings[] = {".txt"};
constexpr std::string_view kAudioEndings[] = {".wav"};

// What the options have in common, as image options.
template <class O>
ImageDatasetOptions common(const O& o) {
  ImageDatasetOptions out;
  out.labels = o.labels;
  out.label_mode = o.label_mode;
  out.class_names = o.class_names;
  out.batch_size = o.batch_size;
  out.shuffle = o.shuffle;
  out.seed = o.seed;
  out.validation_split = o.validation_split;
  out.subset = o.subset;
  out.follow_links = o.follow_links;
  out.verbose = o.verbose;
  internal::check_image_options(out);
  return out;
}

template <class Read>
ImageDataset read_files(const internal::LabelledFilesRequest& request, const Read& read) {
  internal::LabelledFiles found = internal::find_labelled_files(request);
  Dataset dataset = internal::labelled_paths(request, found, request.options.shuffle);
  const data::MapOptions parallel{.num_parallel_calls = data::kAutotune};
  if (found.labelled) {
    dataset = dataset.map(
        [read](const Tensor& path, const Tensor& label) { return std::pair(read(path), label); },
        parallel);
  } else {
    dataset = dataset.map([read](const Tensor& path) { return read(path); }, parallel);
  }
  if (request.options.batch_size) dataset = dataset.batch(*request.options.batch_size);
  return {dataset.prefetch(data::kAutotune), std::move(found.class_names), found.paths()};
}

void require_positive(const char* name, std::int64_t value) {
  if (value > 0) return;
  throw InvalidArgumentError(
      cat("`", name, "` must be higher than 0. Received: ", name, "=", value));
}

}  // namespace

TextDataset text_dataset_from_directory(const String& directory, const TextDatasetOptions& o) {
  if (o.max_length) require_positive("max_length", *o.max_length);
  return read_files({directory, common(o), kTextEndings, "text files", "('.txt',)"},
                    [length = o.max_length](const Tensor& path) {
                      const Tensor text = io::read_file(path);
                      if (!length) return text;
                      return strings::substr(text, Tensor(0),
                                             Tensor(static_cast<std::int32_t>(*length)));
                    });
}

AudioDataset audio_dataset_from_directory(const String& directory, const AudioDatasetOptions& o) {
  if (o.output_sequence_length)
    require_positive("output_sequence_length", *o.output_sequence_length);
  return read_files({directory, common(o), kAudioEndings, "audio files", "('.wav',)"},
                    [length = o.output_sequence_length.value_or(-1)](const Tensor& path) {
                      return audio::decode_wav(io::read_file(path), -1, length).audio;
                    });
}

Dataset timeseries_dataset_from_array(const Tensor& data, const Tensor& targets,
                                      std::int64_t sequence_length,
                                      const TimeseriesDatasetOptions& o) {
  const std::int64_t rows = data.dim(0);
  const std::int64_t start = o.start_index.value_or(0), end = o.end_index.value_or(rows);
  if (start < 0 || (o.start_index && start >= rows)) {
    throw InvalidArgumentError(
        cat("`start_index` must be 0 or higher and lower than the length of the data. Received: "
            "start_index=",
            start, ", for data of length ", rows));
  }
  if (o.end_index && (end <= start || end > rows)) {
    throw InvalidArgumentError(
        cat("`end_index` must be higher than `start_index` and at most the length of the data. "
            "Received: start_index=",
            start, ", end_index=", end, ", for data of length ", rows));
  }
  require_positive("sequence_length", sequence_length);
  require_positive("sampling_rate", o.sampling_rate);
  require_positive("sequence_stride", o.sequence_stride);
  if (o.batch_size) require_positive("batch_size", *o.batch_size);
  std::int64_t count = end - start - (sequence_length - 1) * o.sampling_rate;
  if (targets.defined()) count = std::min(count, targets.dim(0));
  std::vector<std::int64_t> positions;
  for (std::int64_t at = 0; at < count; at += o.sequence_stride) positions.push_back(at);
  const std::int64_t seed = o.seed ? *o.seed : std::int64_t{std::random_device()() % 1000000};
  if (o.shuffle) {
    std::vector<std::int64_t> shuffled;
    for (const std::size_t i :
         internal::numpy_shuffle(positions.size(), static_cast<std::uint32_t>(seed)))
      shuffled.push_back(positions[i]);
    positions = std::move(shuffled);
  }
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 0; i < sequence_length; ++i) steps.push_back(i * o.sampling_rate);
  Dataset dataset = data::from_tensor_slices(Tensor::from(positions));
  if (o.shuffle) dataset = dataset.shuffle(o.batch_size ? *o.batch_size * 8 : 1024, {.seed = seed});
  // A batch is gathered at once: positions [batch, 1] and steps give [batch, sequence_length].
  if (o.batch_size) dataset = dataset.batch(*o.batch_size);
  const Tensor offsets = Tensor::from(steps), from = Tensor(start);
  const auto sequences = [data, offsets, from](const Tensor& at) {
    return gather(data, expand_dims(at + from, -1) + offsets, 0);
  };
  if (targets.defined()) {
    dataset = dataset.map([sequences, targets, from](const Tensor& at) {
      return std::pair(sequences(at), gather(targets, at + from, 0));
    });
  } else {
    dataset = dataset.map(sequences);
  }
  return dataset.prefetch(data::kAutotune);
}

}  // namespace tandem::keras::utils
