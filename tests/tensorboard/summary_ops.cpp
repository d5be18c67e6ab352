// summary_ops FILE: calls the summary ops on fixed inputs, and writes the Summaries that they give,
// as records of FILE, in the order of the calls in compare.py.
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "tandem/fs/record_file.h"
#include <tandem/tandem.h>

namespace td = tandem;

namespace {

// 2 · 3 · 4 · `channels` numbers from `low` to `high`, in an order that is no gradient.
td::Tensor images(double low, double high, std::int64_t channels) {
  std::vector<float> values;
  const std::int64_t count = 2 * 3 * 4 * channels;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto share = static_cast<double>(i * 7 % count) / static_cast<double>(count - 1);
    values.push_back(static_cast<float>(low + (high - low) * share));
  }
  return td::Tensor::from(values, {2, 3, 4, channels});
}

td::Tensor clips() {
  std::vector<float> values;
  for (int i = 0; i < 40; ++i) values.push_back(static_cast<float>((i * 13 % 40) - 20) / 16.0f);
  return td::Tensor::from(values, {2, 10, 2});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: summary_ops FILE\n");
    return 2;
  }
  td::fs::RecordWriter out(argv[1]);
  std::vector<td::Tensor> all;
  const auto call = [&](const char* op, std::initializer_list<td::Tensor> inputs,
                        const td::AttrMap& attrs = {}) {
    all.push_back(td::raw_op(op, inputs, attrs)[0]);
    out.write(all.back().item<std::string>());
  };
  call("ScalarSummary", {td::Tensor("a"), td::Tensor(0.5)});
  call("ScalarSummary", {td::Tensor::from(std::vector<std::string>{"b", "c"}), td::Tensor{3, -4}});
  call("HistogramSummary", {td::Tensor("h"), td::Tensor{-3.0, 0.0, 1e-13, 0.5, 0.5, 7.0, 1e21}});
  call("HistogramSummary", {td::Tensor("none"), td::zeros({0})});
  call("HistogramSummary", {td::Tensor("ints"), td::Tensor{1, 2, 3, 100}});
  call("ImageSummary", {td::Tensor("bright"), images(0, 3, 3)});
  call("ImageSummary", {td::Tensor("signed"), images(-2, 1, 1)}, {{"max_images", 1}});
  td::Tensor bad = images(0, 1, 3);
  std::vector<float> with_nan = bad.to_vector<float>();
  with_nan[4] = std::numeric_limits<float>::quiet_NaN();
  call("ImageSummary", {td::Tensor("bad"), td::Tensor::from(with_nan, {2, 3, 4, 3})});
  call("ImageSummary", {td::Tensor("bytes"), td::cast(images(0, 255, 4), td::uint8)});
  call("AudioSummaryV2", {td::Tensor("clips"), clips(), td::Tensor(44100.0)});
  call("AudioSummary", {td::Tensor("clip"), clips()},
       {{"sample_rate", 8000.0f}, {"max_outputs", 1}});
  call("TensorSummaryV2", {td::Tensor("t"), td::Tensor{1.0, 2.0}, td::Tensor("\x0a\x03\x0a\x01p")});
  call("TensorSummaryV2",
       {td::Tensor("s"), td::Tensor::from(std::vector<std::string>{"x", "yz"}), td::Tensor("")});
  call("MergeSummary", {all[0], all[1], all[2]}, {{"N", 3}});
  out.close();
  return 0;
}
