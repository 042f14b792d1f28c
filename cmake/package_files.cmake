# CPack runs this for each kind of package when it has installed each component to a folder, and before it makes a
# package of each folder. It compresses manual pages, and moves the programs' symbols to a package of their own. For
# Debian it adds what its policy asks of a package, and `cmake --install` does not install: changelogs, the copyright,
# and the reasons for what lintian reports.

# compress FILE: to FILE.gz. No name and no time is in it, so that the same file gives the same bytes.
function(compress file)
  execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(compress_pages root)
  file(GLOB pages ${root}/usr/share/man/man*/*)
  foreach(page ${pages})
    if(IS_SYMLINK ${page})
      file(READ_SYMLINK ${page} target)
      file(CREATE_LINK ${target}.gz ${page}.gz SYMBOLIC)
      file(REMOVE ${page})
    else()
      compress(${page})
    endif()
  endforeach()
endfunction()

# The license in the form of https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
function(write_copyright folder)
  file(STRINGS ${CPACK_RMEMFS_SOURCE_DIR}/LICENSE lines)
  set(license "")
  foreach(line IN LISTS lines)
    if(line MATCHES "^Copyright \\(c\\) (.*)")
      set(holders ${CMAKE_MATCH_1})
    elseif(holders)
      if(line STREQUAL "")
        set(line .)
      endif()
      string(APPEND license " ${line}\n")
    endif()
  endforeach()
  string(REGEX REPLACE "^ \\.\n" "" license "${license}")
  file(WRITE ${folder}/copyright
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
    "Upstream-Name: rmemfs\n\n"
    "Files: *\n"
    "Copyright: ${holders}\n"
    "License: BSD-2-Clause\n${license}")
endfunction()

# $SOURCE_DATE_EPOCH sets the time.
function(write_changelogs folder)
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${folder}/changelog.Debian
    "rmemfs (${CPACK_RMEMFS_DEBIAN_VERSION}) ${CPACK_RMEMFS_DEBIAN_CODENAME}; urgency=medium\n\n"
    "  * Made from the sources of rmemfs by CPack; changelog.gz has their changes.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
  compress(${folder}/changelog.Debian)
  configure_file(${CPACK_RMEMFS_SOURCE_DIR}/CHANGELOG.md ${folder}/changelog COPYONLY)
  compress(${folder}/changelog)
endfunction()

function(add_for_debian component root)
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  write_copyright(${root}/usr/share/doc/${name})
  write_changelogs(${root}/usr/share/doc/${name})
  set(overrides ${CPACK_RMEMFS_SOURCE_DIR}/packaging/debian/${name}/lintian-overrides)
  if(EXISTS ${overrides})
    file(MAKE_DIRECTORY ${root}/usr/share/lintian/overrides)
    file(COPY_FILE ${overrides} ${root}/usr/share/lintian/overrides/${name})
  endif()
endfunction()

# Folders and data are for everybody, whatever the umask. The install rules say what programs and keys are.
function(set_permissions root)
  set(folder_permissions OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  if(EXISTS ${root}/usr/share)
    file(CHMOD_RECURSE ${root}/usr/share
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
      DIRECTORY_PERMISSIONS ${folder_permissions})
  endif()
  file(GLOB_RECURSE entries LIST_DIRECTORIES true ${root}/*)
  list(FILTER entries EXCLUDE REGEX "/etc/rmemfs/keys$")
  foreach(entry ${entries})
    if(IS_DIRECTORY ${entry})
      file(CHMOD ${entry} PERMISSIONS ${folder_permissions})
    endif()
  endforeach()
endfunction()

# move_symbols PROGRAM: to the place where gdb looks for the program's build id.
function(move_symbols program)
  execute_process(COMMAND ${CPACK_RMEMFS_READELF} -n ${program} OUTPUT_VARIABLE notes COMMAND_ERROR_IS_FATAL ANY)
  if(NOT notes MATCHES "Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)")
    message(FATAL_ERROR "${program} has no build id: link it with -Wl,--build-id")
  endif()
  set(folder ${CPACK_TEMPORARY_DIRECTORY}/symbols/usr/lib/debug/.build-id/${CMAKE_MATCH_1})
  set(symbols ${folder}/${CMAKE_MATCH_2}.debug)
  file(MAKE_DIRECTORY ${folder})
  execute_process(
    COMMAND ${CPACK_RMEMFS_OBJCOPY} --only-keep-debug --compress-debug-sections ${program} ${symbols}
    COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${symbols} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  execute_process(COMMAND ${CPACK_RMEMFS_STRIP} --remove-section=.comment ${program} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

move_symbols(${CPACK_TEMPORARY_DIRECTORY}/client/usr/sbin/rmemfs)
move_symbols(${CPACK_TEMPORARY_DIRECTORY}/client/usr/bin/rmemfsctl)
move_symbols(${CPACK_TEMPORARY_DIRECTORY}/client/usr/bin/rmemfs-metrics)
move_symbols(${CPACK_TEMPORARY_DIRECTORY}/server/usr/sbin/rmemfs-server)
foreach(component ${CPACK_COMPONENTS_ALL})
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component})
  compress_pages(${root})
  if(CPACK_GENERATOR STREQUAL "DEB")
    add_for_debian(${component} ${root})
  elseif(component STREQUAL "client")
    file(COPY ${CPACK_RMEMFS_SOURCE_DIR}/LICENSE DESTINATION ${root}/usr/share/licenses/rmemfs)
  endif()
  set_permissions(${root})
endforeach()
