// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/module_check.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/objectstore/sha256.h"
#include "trainer_function/data/dataset_check.h"
#include "trainer_function/data/zip_directory.h"
#include "trainer_function/model/script_archive.h"

namespace lambdadnn {
namespace {

constexpr char kField[] = "spec.model.torchScript.uri";
constexpr char kSave[] = "save it with torch.jit.script(module).save(FILE)";

Result<DataFile> OpenModule(const std::string& uri, const OpenStoreAt& open_store) {
  const size_t scheme = uri.find("://");
  const size_t slash = uri.rfind('/');
  if (scheme == std::string::npos || slash < scheme + 3 || slash + 1 == uri.size()) {
    return InvalidArgumentError("'" + uri +
                                "' names no object; write file:///folder/name or s3://bucket/name");
  }
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, open_store(uri.substr(0, slash)));
  return DataFile::Open(std::move(store), uri.substr(slash + 1));
}

Status CheckMember(const ZipMember& member) {
  std::string content(member.unpacked_bytes, '\0');
  const std::unique_ptr<ByteStream> stream = member.part.Stream();
  LDNN_RETURN_IF_ERROR(
      stream->ReadExactly(std::as_writable_bytes(std::span(content)), member.name));
  return CheckCodeOfModule(member.name, content);
}

Status CheckMembers(const DataFile& file) {
  const ZipWords words = {"TorchScript archive", kSave};
  LDNN_ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ListZip(file, words, IsCodeOfModule));
  uint64_t bytes = 0;
  for (const ZipMember& member : members) {
    bytes += member.unpacked_bytes;
    if (bytes > kMaxModuleCodeBytes) {
      return InvalidArgumentError(file.name() + " has more than " +
                                  std::to_string(kMaxModuleCodeBytes >> 20) +
                                  " MiB of code; keep numbers in parameters and buffers");
    }
    LDNN_RETURN_IF_ERROR(CheckMember(member));
  }
  if (!members.empty()) return OkStatus();
  return InvalidArgumentError(file.name() + " has no code and so is no TorchScript archive; " +
                              kSave);
}

// The digest; with `archive` not null all bytes as well.
Result<std::string> ReadAll(const DataFile& file, std::string* archive) {
  Sha256 digest;
  for (uint64_t at = 0; at < file.size(); at += kReadBlockBytes) {
    LDNN_ASSIGN_OR_RETURN(const Bytes block,
                          file.Read(at, std::min(kReadBlockBytes, file.size() - at)));
    digest.Add(block);
    if (archive != nullptr) archive->append(AsText(block));
  }
  return kModuleDigestPrefix + digest.Hex();
}

// What the module has to fit; nothing where the data set cannot be read from here.
std::optional<TrialNeeds> FindNeeds(const TrainingConfig& training, const OpenStoreAt& open_store) {
  DatasetConfig config = DatasetOf(training);
  config.first_records = kCheckedRecords;
  const auto dataset = OpenDatasetAt(config, open_store);
  if (!dataset.ok()) return std::nullopt;
  const DatasetInfo& info = (*dataset)->info();
  TrialNeeds needs = TrialNeeds::Of(training, info);
  needs.more_classes = config.classes == 0 && info.classes > 0 && info.samples >= kCheckedRecords;
  if (needs.more_classes) needs.classes = std::max(needs.classes, 2);
  return needs;
}

}  // namespace

Result<ModuleFacts> CheckModule(const TrainingConfig& training, const OpenStoreAt& open_store,
                                const ModuleTrial& trial) {
  const auto file = OpenModule(training.model.torch_script_uri, open_store);
  if (!file.ok()) return file.status().WithContext(kField);
  if (file->size() > kMaxModuleBytes) {
    return InvalidArgumentError(std::string(kField) + ": " + file->name() + " has " +
                                std::to_string(file->size()) + " bytes; at most " +
                                std::to_string(kMaxModuleBytes) + " are read");
  }
  LDNN_RETURN_IF_ERROR(CheckMembers(*file).WithContext(kField));
  const auto needs = trial != nullptr ? FindNeeds(training, open_store) : std::nullopt;
  std::string archive;
  ModuleFacts facts;
  LDNN_ASSIGN_OR_RETURN(facts.digest, ReadAll(*file, needs ? &archive : nullptr));
  if (!needs) return facts;
  // That it could not be tried here says nothing: functions try it then.
  const Status tried = trial(archive, *needs);
  if (tried.code() == StatusCode::kInvalidArgument) return tried;
  facts.tried = tried.ok();
  return facts;
}

}  // namespace lambdadnn
