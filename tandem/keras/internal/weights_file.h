#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tandem/core/array.h"
#include "tandem/io/hdf5.h"
#include "tandem/io/zip.h"
#include "tandem/keras/internal/vocabulary.h"
#include "tandem/keras/model.h"
#include "tandem/ops/variable.h"

namespace tandem::keras::internal {

/// Where the weights of a model are in Keras' `.weights.h5`: "layers/dense/vars/0" and so on, a
/// layer by its class and its number among those of the class.
struct WeightPlaces {
  struct Place {
    std::string path;
    Variable variable;
    std::string owner;  ///< for errors
  };
  std::vector<Place> places;
  /// What Keras notes of each group: the layer's name, by the path of the group's "vars".
  std::map<std::string, std::string> names;
  /// Layers that may have a vocabulary beside the weights, by their paths. The model owns them.
  std::map<std::string, StoredVocabulary*> vocabularies;
};

/// With those of the optimizer, which is built if need be, on request.
WeightPlaces weight_places(const Model& model, bool with_optimizer);

io::Hdf5Content weights_content(const WeightPlaces& places);
/// Assigns all or nothing; `file` is what errors call the content. Throws NotFoundError for a
/// weight that the file lacks, InvalidArgumentError where shapes or dtypes differ or it holds more
/// weights of a layer.
void assign_weights(const WeightPlaces& places, const io::Hdf5Content& content,
                    const std::string& file);

/// What the archive of a `.keras` file has for vocabularies: "assets/PATH/vocabulary.txt".
std::vector<io::ZipEntry> vocabulary_entries(const WeightPlaces& places);
/// Vocabularies that are not there stay as they are; `file` is what errors call the archive.
void assign_vocabularies(const WeightPlaces& places, const std::vector<io::ZipEntry>& entries,
                         const io::Hdf5Content& weights, const std::string& file);

/// The content of a `.weights.h5` file, or of the one in a `.keras` file.
io::Hdf5Content read_weights_file(const std::string& path);

/// Whether the content has anything of an optimizer.
bool has_optimizer(const io::Hdf5Content& content);

}  // namespace tandem::keras::internal
