// UnicodeDecode, UnicodeEncode, UnicodeTranscode.

#include <string>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/graph/kernel.h"
#include "tandem/kernels/cpu/ragged/ragged.h"
#include "tandem/kernels/cpu/string/unicode_text.h"

namespace tandem::cpu {
namespace {

// What becomes of characters that are none.
struct Policy {
  bool strict, ignore, controls;
  char32_t replacement;

  explicit Policy(const KernelContext& c)
      : strict(c.attr<std::string>("errors") == "strict"),
        ignore(c.attr<std::string>("errors") == "ignore"),
        controls(c.find_attr("replace_control_characters") != nullptr &&
                 c.attr<bool>("replace_control_characters")) {
    const auto given = c.attr<std::int64_t>("replacement_char");
    if (given < 0 || given > 0x10FFFF) {
      throw InvalidArgumentError(cat("replacement_char out of unicode codepoint range: ", given));
    }
    replacement = static_cast<char32_t>(given);
  }
  bool refuses(const Taken& taken) const {
    return !taken.valid || (controls && taken.character <= 0x1F);
  }
};

constexpr const char* kMalformed = "Invalid formatting on input string";

void decode(KernelContext& c) {
  const Policy policy(c);
  const TextDecoder decoder(c.attr<std::string>("input_encoding"));
  std::vector<std::int64_t> splits{0}, starts;
  std::vector<std::int32_t> characters;
  for (const std::string& text : c.input(0).values<std::string>()) {
    std::int64_t at = 0;
    decoder.for_each(text, [&](const Taken& taken) {
      if (policy.strict && !taken.valid) throw InvalidArgumentError(kMalformed);
      const std::int64_t start = at;
      at += static_cast<std::int64_t>(taken.bytes);
      const bool refused = policy.refuses(taken);
      if (refused && policy.ignore) return;
      characters.push_back(
          static_cast<std::int32_t>(refused ? policy.replacement : taken.character));
      starts.push_back(start);
    });
    splits.push_back(static_cast<std::int64_t>(characters.size()));
  }
  set_integers(c, 0, splits);
  c.set_output(1, Array::vector(characters));
  if (c.num_outputs() > 2) set_integers(c, 2, starts);
}

void encode(KernelContext& c) {
  const Policy policy(c);
  const TextEncoder encoder(c.attr<std::string>("output_encoding"));
  const Array &values = c.input(0), &splits = c.input(1);
  if (values.rank() != 1 || splits.rank() != 1) {
    throw InvalidArgumentError(cat("input_values and input_splits must be vectors, got shapes ",
                                   values.shape(), " and ", splits.shape()));
  }
  const std::vector<std::int64_t> ends = integers_of(splits);
  if (ends.empty()) throw InvalidArgumentError("Input_splits should contain elements, but was 0");
  if (ends.front() != 0) {
    throw InvalidArgumentError("First value in input_splits must be zero.");
  }
  if (ends.back() != values.num_elements()) {
    throw InvalidArgumentError(
        cat("Last value in input_splits must be equal to length of input_tensor: ", ends.back(),
            " is not ", values.num_elements()));
  }
  if (!std::is_sorted(ends.begin(), ends.end())) {
    throw InvalidArgumentError("Values in input_splits must be equal or in ascending order.");
  }
  Array& out = c.allocate_output(0, Shape{static_cast<std::int64_t>(ends.size()) - 1});
  const auto* character = values.data<std::int32_t>();
  for (std::size_t row = 0; row + 1 < ends.size(); ++row) {
    std::string text;
    for (std::int64_t i = ends[row]; i < ends[row + 1]; ++i) {
      const auto number = static_cast<char32_t>(character[i]);
      const bool surrogate = number >= 0xD800 && number <= 0xDFFF;
      if (number <= 0x10FFFF && !surrogate) {
        encoder.append(number, text);
        continue;
      }
      if (policy.strict) {
        throw InvalidArgumentError(
            cat("Code point ", character[i], " is out of range for Unicode."));
      }
      if (!policy.ignore) encoder.append(policy.replacement, text);
    }
    out.data<std::string>()[row] = std::move(text);
  }
}

void transcode(KernelContext& c) {
  const Policy policy(c);
  const TextDecoder decoder(c.attr<std::string>("input_encoding"));
  const TextEncoder encoder(c.attr<std::string>("output_encoding"));
  const Array& in = c.input(0);
  Array& out = c.allocate_output(0, in.shape());
  for (std::int64_t i = 0; i < in.num_elements(); ++i) {
    std::string text;
    decoder.for_each(in.data<std::string>()[i], [&](const Taken& taken) {
      const bool refused = policy.refuses(taken);
      if (refused && policy.strict) throw InvalidArgumentError(kMalformed);
      if (refused && policy.ignore) return;
      encoder.append(refused ? policy.replacement : taken.character, text);
    });
    out.data<std::string>()[i] = std::move(text);
  }
}

const KernelRegistration kDecode{{.op = "UnicodeDecode", .run = decode}};
const KernelRegistration kDecodeWithOffsets{{.op = "UnicodeDecodeWithOffsets", .run = decode}};
const KernelRegistration kEncode{{.op = "UnicodeEncode", .run = encode}};
const KernelRegistration kTranscode{{.op = "UnicodeTranscode", .run = transcode}};

}  // namespace
}  // namespace tandem::cpu
