#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/core/dtype.h"
#include "tandem/core/export.h"
#include "tandem/core/shape.h"
#include "tandem/core/string.h"
#include "tandem/runtime/tensor.h"

namespace tandem::io {

// Tensors by name in the format of https://github.com/huggingface/safetensors: a header in JSON,
// then the elements as they lie in memory. Large models are spread over several files, and a file
// `NAME.safetensors.index.json` says which tensor is in which.

/// Reads a safetensors file. The file is mapped into memory: opening reads the header alone, and
/// `read` copies nothing, so the bytes of a tensor come from the disk when they are first used. See
/// fs::MappedFile for what must not be done to the file meanwhile. Thread-safe.
///
///     td::io::SafetensorsReader reader("model.safetensors");
///     td::Array kernel = reader.read("dense.weight");
class TANDEM_EXPORT SafetensorsReader {
 public:
  /// `path` is a file, or an index (`….safetensors.index.json`) of files that lie beside it.
  ///
  /// Throws DataLossError for everything that the format forbids: a header of more than 100 MB,
  /// keys twice, unknown dtypes, offsets that overlap, leave the file or do not fit the shape, and
  /// bytes that belong to no tensor. Throws InvalidArgumentError for an index that leads out of its
  /// folder.
  explicit SafetensorsReader(const String& path);
  /// A file in memory, which must stay until the reader and all arrays of it are gone; errors call
  /// it `name`.
  SafetensorsReader(std::string_view bytes, const String& name);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&&) noexcept;

  /// Sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  // Throw NotFoundError for a name that is not in the file.
  /// The format's name of the element type: "F32", "BF16", "F8_E4M3".
  const std::string& type(const std::string& name) const;
  /// Throws UnimplementedError for types that Tandem has no dtype for (F4, F6_*, F8_E8M0).
  DType dtype(const std::string& name) const;
  Shape shape(const std::string& name) const;
  std::uint64_t num_bytes(const std::string& name) const;
  /// The tensor, without a copy where its place in the file is aligned for its elements, as writers
  /// of the format see to. It keeps the file mapped, and may outlive the reader.
  Array read(const std::string& name) const;
  /// What the header says besides; of an index, its own metadata as text.
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// All tensors of a file or an index; see SafetensorsReader.
TANDEM_EXPORT std::map<std::string, Tensor> load_safetensors(const String& path);

struct SaveSafetensorsOptions {
  /// Stands in the header; PyTorch's libraries expect {"format", "pt"}.
  std::map<std::string, std::string> metadata = {};
  /// Tensors that are more bytes together are spread over files of at most so many bytes (but for a
  /// tensor that is larger alone), which become `NAME-00001-of-00002.safetensors` and so on beside
  /// `path`, with the index `NAME.safetensors.index.json`. 0: one file.
  std::uint64_t max_file_bytes = 0;
};

/// Writes tensors to one file, or to several with an index; each appears complete or not at all,
/// the index last. Returns the path to load. Throws InvalidArgumentError for dtypes that the format
/// lacks (strings, complex128, quantized) and for names that are no UTF-8.
TANDEM_EXPORT std::string save_safetensors(const String& path,
                                           const std::map<std::string, Tensor>& tensors,
                                           const SaveSafetensorsOptions& options = {});

}  // namespace tandem::io
