// Input pipelines. The files that both sides read are made by harness/data_files.py, which calls
// `bench_data --records FOLDER` for the record files and the text.
//
// usage: bench_data | bench_data --records FOLDER | bench_data jpeg_memory
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <tandem/tandem.h>

#include "bench/common/memory.h"
#include "bench/common/pipelines.h"
#include "bench/common/samples.h"
#include "bench/common/serve.h"
#include "bench/common/timing.h"
#include "bench/ours/data/autotune.h"

namespace td = tandem;

namespace bench {

std::string folder() {
  const char* given = std::getenv("TANDEM_BENCH_DATA");
  if (given == nullptr) throw std::runtime_error("TANDEM_BENCH_DATA names no folder");
  return given;
}

td::Tensor load(td::Tensor path) {
  namespace image = td::image;
  const td::Tensor pixels = image::decode_jpeg(td::io::read_file(std::move(path)), {.channels = 3});
  return image::resize(pixels, {kImageSide, kImageSide});
}

}  // namespace bench

namespace {

using bench::folder;
using bench::load;

// One pass over `dataset`; `look` sees every element. The number of its first component's rows.
template <class Look>
std::int64_t pass(const td::data::Dataset& dataset, Look look) {
  std::int64_t rows = 0;
  auto iterator = dataset.iterator();
  for (td::data::Element element; iterator.next(element);) {
    rows += element[0].dim(0);
    look(element);
  }
  return rows;
}
std::int64_t pass(const td::data::Dataset& dataset) {
  return pass(dataset, [](const td::data::Element&) {});
}

// Passes over `dataset` for a second or more, `units` each.
bench::Answer rate(const td::data::Dataset& dataset, std::int64_t rows, double units,
                   double check) {
  bench::Answer answer;
  answer.check = check;
  const double start = bench::now();
  double elapsed = 0;
  int passes = 0;
  do {
    if (pass(dataset) != rows) throw std::runtime_error("a pass has not all elements");
    ++passes;
    elapsed = bench::now() - start;
  } while (elapsed < bench::kPipelineSeconds);
  answer.value = units * passes / elapsed;
  return answer;
}

double sum(const td::Tensor& tensor) {
  return td::reduce_sum(td::cast(tensor, td::float64)).item<double>();
}

td::data::Dataset images() {
  const td::data::MapOptions parallel{.num_parallel_calls = td::data::kAutotune};
  return td::data::list_files(folder() + "/photos/*.jpg", {.shuffle = false})
      .map(
          [](td::Tensor path) {
            return td::image::random_brightness(load(std::move(path)), bench::kBrightness) / 255.0f;
          },
          parallel)
      .batch(bench::kImageBatch)
      .prefetch(td::data::kAutotune);
}

bench::Answer jpeg() {
  static const double check = [] {
    const auto plain = td::data::list_files(folder() + "/photos/*.jpg", {.shuffle = false})
                           .take(bench::kImageBatch)
                           .map(load);
    double total = 0;
    pass(plain, [&](const td::data::Element& e) { total += sum(e[0]); });
    return total;
  }();
  return rate(images(), bench::kImages, bench::kImages, check);
}

bench::Answer range_map() {
  const auto dataset =
      td::data::range(bench::kNumbers).map([](td::Tensor x) { return x + 1; }).batch(100);
  static const double check = [&] {
    double total = 0;
    pass(dataset, [&](const td::data::Element& e) { total += sum(e[0]); });
    return total;
  }();
  return rate(dataset, bench::kNumbers, bench::kNumbers, check);
}

bench::Answer tfrecord() {
  const auto dataset = td::data::TFRecordDataset(folder() + "/records.tfrecord").batch(1000);
  static const double check = [&] {
    double total = 0;
    pass(dataset, [&](const td::data::Element& e) {
      for (const std::string& record : e[0].data<std::string>()) {
        total += static_cast<unsigned char>(record.back());
      }
    });
    return total;
  }();
  return rate(dataset, bench::kRecords, bench::kRecords * bench::kRecordBytes / 1e6, check);
}

td::data::Element parse(td::Tensor records) {
  td::io::FeatureSpec spec;
  for (int i = 0; i < bench::kFeatures; ++i) {
    spec[bench::float_key(i)] = td::io::FixedLenFeature{{8}, td::DType::kFloat};
    spec[bench::int_key(i)] = td::io::FixedLenFeature{{2}, td::DType::kInt64};
  }
  td::data::Element parsed;
  for (auto& [key, values] : td::io::parse_example(std::move(records), spec).dense) {
    parsed.push_back(values);
  }
  return parsed;
}

bench::Answer parse_example() {
  static const td::data::Dataset batches = [] {
    std::vector<td::Tensor> all;
    for (const auto& batch :
         td::data::TFRecordDataset(folder() + "/examples.tfrecord").batch(bench::kExampleBatch)) {
      all.push_back(batch[0]);
    }
    return td::data::from_tensor_slices(td::stack(all));
  }();
  const auto dataset = batches.map(parse);
  static const double check = [&] {
    double total = 0;
    pass(dataset, [&](const td::data::Element& e) {
      for (const td::Tensor& values : e) total += sum(values);
    });
    return total;
  }();
  return rate(dataset, bench::kExamples, bench::kExamples, check);
}

bench::Answer shuffle_batch() {
  static const td::data::Dataset pictures = td::data::from_tensor_slices(
      td::Tensor::from(bench::uniform(bench::kPictures * bench::kPixels, bench::kImageSeed),
                       {bench::kPictures, 28, 28}));
  const auto dataset = pictures.shuffle(10000).batch(128);
  static const double check = [&] {
    double total = 0;
    pass(dataset, [&](const td::data::Element& e) { total += sum(e[0]); });
    return total;
  }();
  return rate(dataset, bench::kPictures, bench::kPictures, check);
}

td::data::Dataset sequences() {
  static const td::Tensor lengths = td::Tensor::from(bench::sequence_lengths());
  return td::data::from_tensor_slices(lengths).map(
      [](td::Tensor length) { return td::fill(td::reshape(length, {1}), length); });
}

bench::Answer of_sequences(const td::data::Dataset& dataset) {
  double total = 0;
  pass(dataset, [&](const td::data::Element& e) { total += sum(e[0]) + 1e-3 * e[0].dim(1); });
  return rate(dataset, bench::kSequences, bench::kSequences, total);
}

bench::Answer padded_batch() { return of_sequences(sequences().padded_batch(64)); }

bench::Answer bucket() {
  return of_sequences(sequences().bucket_by_sequence_length(
      [](const td::data::Element& e) { return e[0].dim(0); }, {51, 101, 151}, {64, 64, 64, 64}));
}

int jpeg_memory() {
  const auto dataset = images();
  for (int epoch = 0; epoch < bench::kMemoryEpochs; ++epoch) {
    if (pass(dataset) != bench::kImages) return 1;
  }
  std::printf("{\"peak_mb\": %.3f}\n", bench::peak_memory_mb());
  return 0;
}

void make_records(const std::string& to) {
  td::data::TFRecordWriter plain(to + "/records.tfrecord");
  std::string record(bench::kRecordBytes, '\0');
  for (std::int64_t i = 0; i < bench::kRecords; ++i) {
    for (std::size_t b = 0; b < record.size(); ++b) {
      record[b] = static_cast<char>(
          bench::mixed(static_cast<std::uint64_t>(i) * record.size() + b, bench::kRecordSeed));
    }
    plain.write(record);
  }
  plain.close();

  td::data::TFRecordWriter examples(to + "/examples.tfrecord");
  const std::vector<float> values =
      bench::uniform(bench::kExamples * bench::kFeatures * 10, bench::kExampleSeed);
  std::size_t at = 0;
  for (std::int64_t i = 0; i < bench::kExamples; ++i) {
    td::io::Example example;
    for (int f = 0; f < bench::kFeatures; ++f) {
      std::vector<float> floats(8);
      for (float& value : floats) value = values[at++];
      std::vector<std::int64_t> ints(2);
      for (std::int64_t& value : ints) value = static_cast<std::int64_t>(values[at++] * 1e6f);
      example.set(bench::float_key(f), floats).set(bench::int_key(f), ints);
    }
    examples.write(example.serialize());
  }
  examples.close();
}

// A word of one to twelve letters, different for each number by its consonants.
std::string word(std::int64_t number) {
  const std::uint64_t bits = bench::mixed(static_cast<std::uint64_t>(number), bench::kWordSeed);
  std::string letters;
  for (std::int64_t rest = number; rest > 0 || letters.empty(); rest /= 20) {
    letters += "tnsrhldcmfpgwybvkxjq"[rest % 20];
    letters.append(bits % 3, "aeiou"[(bits >> letters.size()) % 5]);
  }
  return letters;
}

void make_text(const std::string& to) {
  std::vector<std::string> words;
  std::ofstream vocabulary(to + "/words.txt");
  for (std::int64_t i = 0; i < bench::kWords; ++i) {
    words.push_back(word(i));
    if (i < bench::kTokens) vocabulary << words.back() << '\n';
  }
  std::ofstream text(to + "/text.txt");
  std::uint64_t place = 0;
  const auto next = [&place] { return bench::mixed(place++, bench::kTextSeed); };
  for (std::int64_t written = 0; written < bench::kTextBytes;) {
    std::string line;
    for (std::uint64_t left = 20 + next() % 181; left > 0; --left) {
      // Evenly drawn logarithms: the word of rank r comes with a frequency of 1 / r.
      const std::uint64_t bits = next();
      const double share = static_cast<double>(bits >> 11) * 0x1p-53;
      const double rank = std::exp(share * std::log(static_cast<double>(bench::kWords))) - 1;
      const std::size_t start = line.size();
      line += words[static_cast<std::size_t>(rank)];
      if (bits % 11 == 0) line[start] = static_cast<char>(line[start] - 'a' + 'A');
      if (bits % 13 == 0) line += bits % 2 == 0 ? "," : "'s";
      if (bits % 17 == 0) line += '.';
      line += left > 1 ? ' ' : '\n';
    }
    text << line;
    written += static_cast<std::int64_t>(line.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  td::config::threading::set_intra_op_parallelism_threads(bench::threads());
  td::config::threading::set_inter_op_parallelism_threads(bench::threads());
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "--records" && argc == 3) {
    make_records(argv[2]);
    make_text(argv[2]);
    return 0;
  }
  if (what == "jpeg_memory") return jpeg_memory();
  if (argc > 1) return 2;
  return bench::serve({{"jpeg", jpeg},
                       {"range_map", range_map},
                       {"tfrecord", tfrecord},
                       {"parse_example", parse_example},
                       {"shuffle_batch", shuffle_batch},
                       {"padded_batch", padded_batch},
                       {"bucket", bucket},
                       {"autotune", bench::autotune},
                       {"autotune_by_hand", bench::autotune_by_hand},
                       {"autotune_short", bench::autotune_short},
                       {"autotune_short_by_hand", bench::autotune_short_by_hand},
                       {"autotune_waiting", bench::autotune_waiting},
                       {"autotune_waiting_by_hand", bench::autotune_waiting_by_hand}},
                      "tandem");
}
