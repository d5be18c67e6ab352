// Options are written with the members that matter alone: under the warnings that most projects
// have on, `{.traced = true}` must not warn that other members have no value.

#include <iostream>

#include <tandem/tandem.h>

namespace td = tandem;

namespace {

td::data::Dataset doubled(const td::data::Dataset& numbers) {
  const auto twice = [](td::Tensor x) { return x * 2; };
  return numbers.map(twice, {.num_parallel_calls = 2})
      .map(twice, {.traced = true})
      .map(twice, {.deterministic = true});
}

td::data::Dataset in_batches(const td::data::Dataset& numbers) {
  return numbers.shuffle(4, {.seed = 1})
      .shuffle(4, {.reshuffle_each_iteration = false})
      .ignore_errors({.log_warning = true})
      .batch(2, {.drop_remainder = true})
      .batch(1, {.num_parallel_calls = 1})
      .unbatch()
      .padded_batch(1, {.drop_remainder = true})
      .padded_batch(1, {.padding_values = {td::Tensor(std::int64_t{0})}})
      .with_options({.fusion = false})
      .with_options({.deterministic = true})
      .with_options({.autotune = {.cpu_budget = 1}});
}

// These are only written down: what they lead to needs files, or a model.
template <class... Options>
std::size_t count(const Options&...) {
  return sizeof...(Options);
}

std::size_t others() {
  return count(
      td::data::BucketOptions{.no_padding = true}, td::data::InterleaveOptions{.cycle_length = 2},
      td::data::ListFilesOptions{.shuffle = false},
      td::data::SampleOptions{.stop_on_empty_dataset = true}, td::data::ResampleOptions{.seed = 1},
      td::data::SnapshotOptions{.num_shards = 2}, td::data::AutotuneOptions{.enabled = false},
      td::data::FileOptions{.num_parallel_reads = 2},
      td::data::TFRecordOptions{.skip_corrupt = true},
      td::data::FixedLengthRecordOptions{.header_bytes = 8},
      td::data::TFRecordWriterOptions{.compression_level = 1}, td::data::CsvOptions{.header = true},
      td::io::DecodeCsvOptions{.na_value = "?"}, td::io::ImportOptions{.allow_unsupported = true},
      td::io::ExportOptions{.variables = td::io::ExportVariables::kFreeze},
      td::io::FixedLenFeature{.dtype = td::DType::kInt64}, td::io::SequenceExample{.context = {}},
      td::keras::ExportGraphOptions{.inputs = {"x"}},
      td::keras::utils::ImageDatasetOptions{.batch_size = 8}, td::ExplainOptions{.advice = false},
      td::PlacementOptions{.soft = false});
}

}  // namespace

int main() {
  const auto sum =
      td::function([](td::Tensor x, td::Tensor y) { return x + y; }, {.relax_after = 1});
  const auto named = td::function([](td::Tensor x) { return x + 1; }, {.name = "increment"});
  td::Tensor total(std::int64_t{0});
  std::size_t batches = 0;
  for (const auto& batch : in_batches(doubled(td::data::range(4)))) {
    total = sum(total, td::reduce_sum(batch[0]));
    ++batches;
  }
  std::cout << batches << " batches, sum " << total << ", " << others() << " options\n";
  if (batches != 2 || !td::all_equal(total, td::Tensor(std::int64_t{48}))) return 1;
  if (!td::all_equal(named(td::Tensor{1.0, 2.0}), td::Tensor{2.0, 3.0})) return 1;
  std::cout << "ok\n";
}
