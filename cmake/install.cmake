# Installs the files under the configured prefix: the units and the programs contain it (the path of
# their configuration). DESTDIR moves everything for packaging.
#
# Each file has a component, the package that it belongs to: client (rmemfs), server (rmemfs-server) or
# doc (rmemfs-doc). The client has all that a server needs as well: rmemfsctl, by which the server's unit
# reloads and which makes keys, rmemfs.conf(5), the folder of keys, and the module tls.
install(CODE "
  if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"${CMAKE_INSTALL_PREFIX}\")
    message(FATAL_ERROR \"The units and the programs were made for ${CMAKE_INSTALL_PREFIX}: \"
      \"configure with -DCMAKE_INSTALL_PREFIX=\${CMAKE_INSTALL_PREFIX}, or set DESTDIR.\")
  endif()"
  ALL_COMPONENTS)

# rmemfs contains the mount(8) helper and rmemfs-server is a system daemon: sbin. rmemfsctl asks a
# server over the network and needs no rights: bin, in every user's PATH.
install(TARGETS rmemfs RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT client)
install(TARGETS rmemfs-server RUNTIME DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT server)
install(TARGETS rmemfsctl rmemfs-metrics RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT client)

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/installed)

# mount(8) runs /sbin/mount.TYPE. rmemfs recognises its caller by its own name. A program in sbin has a
# manual page of its name.
foreach(helper mount.rmemfs mount.fuse.rmemfs)
  file(CREATE_LINK rmemfs ${CMAKE_BINARY_DIR}/installed/${helper} SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/installed/${helper} DESTINATION ${CMAKE_INSTALL_SBINDIR} COMPONENT client)
  file(CREATE_LINK rmemfs.8 ${CMAKE_BINARY_DIR}/installed/${helper}.8 SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/installed/${helper}.8 DESTINATION ${CMAKE_INSTALL_MANDIR}/man8
    COMPONENT client)
endforeach()

# lib and not ${CMAKE_INSTALL_LIBDIR}, which may name an architecture: systemd looks in
# /usr/lib and /usr/local/lib.
set(RMEMFS_SYSTEMD_UNIT_DIR lib/systemd/system CACHE PATH "Where systemd units go")
set(RMEMFS_SYSUSERS_DIR lib/sysusers.d CACHE PATH "Where systemd-sysusers looks")
set(RMEMFS_TMPFILES_DIR lib/tmpfiles.d CACHE PATH "Where systemd-tmpfiles looks")
set(RMEMFS_MODULES_LOAD_DIR lib/modules-load.d CACHE PATH "Where systemd-modules-load looks")
function(install_unit unit component)
  configure_file(systemd/${unit}.in installed/${unit} @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/installed/${unit} DESTINATION ${RMEMFS_SYSTEMD_UNIT_DIR}
    COMPONENT ${component})
endfunction()
install_unit(rmemfs-server.service server)
install_unit(rmemfs@.service client)
install_unit(rmemfs-metrics.service client)
install(FILES systemd/rmemfs-metrics-server.conf COMPONENT server
  DESTINATION ${RMEMFS_SYSTEMD_UNIT_DIR}/rmemfs-metrics.service.d RENAME server.conf)
install(FILES systemd/rmemfs.sysusers.conf DESTINATION ${RMEMFS_SYSUSERS_DIR} RENAME rmemfs.conf
  COMPONENT server)
install(FILES systemd/rmemfs-mounts.sysusers.conf DESTINATION ${RMEMFS_SYSUSERS_DIR} RENAME rmemfs-mounts.conf
  COMPONENT client)
install(FILES systemd/rmemfs-mounts.tmpfiles.conf DESTINATION ${RMEMFS_TMPFILES_DIR} RENAME rmemfs-mounts.conf
  COMPONENT client)
install(FILES systemd/rmemfs.modules-load.conf DESTINATION ${RMEMFS_MODULES_LOAD_DIR} RENAME rmemfs.conf
  COMPONENT client)
configure_file(systemd/rmemfs.tmpfiles.conf.in installed/rmemfs.tmpfiles.conf @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/installed/rmemfs.tmpfiles.conf DESTINATION ${RMEMFS_TMPFILES_DIR}
  RENAME rmemfs.conf COMPONENT server)

# A shell looks for a file of the program's name; zsh reads the names from the first line. On Debian files of
# packages are in vendor-completions.
set(bash_folder ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES config/completion/rmemfs.bash DESTINATION ${bash_folder} RENAME rmemfs COMPONENT client)
foreach(program rmemfs-server rmemfsctl)
  file(CREATE_LINK rmemfs ${CMAKE_BINARY_DIR}/installed/${program}.bash SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/installed/${program}.bash DESTINATION ${bash_folder} RENAME ${program}
    COMPONENT client)
endforeach()
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(zsh_folder vendor-completions)
else()
  set(zsh_folder site-functions)
endif()
install(FILES config/completion/_rmemfs DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh_folder} RENAME _rmemfs
  COMPONENT client)

# ARCHITECTURE.md links to the page of each folder.
file(GLOB_RECURSE folder_pages RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS
  common/README.md daemon/README.md server/README.md)
foreach(page ${folder_pages})
  cmake_path(GET page PARENT_PATH folder)
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT doc)
endforeach()

# Together with all files that these link to.
install(FILES README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md PERFORMANCE.md LICENSE
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(FILES config/client.conf config/server.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/config COMPONENT doc)
install(FILES config/Containerfile config/container.sh DESTINATION ${CMAKE_INSTALL_DOCDIR}/config COMPONENT doc)
install(DIRECTORY config/kubernetes DESTINATION ${CMAKE_INSTALL_DOCDIR}/config COMPONENT doc
  FILES_MATCHING PATTERN *.yaml PATTERN README.md)
install(DIRECTORY config/tracing DESTINATION ${CMAKE_INSTALL_DOCDIR}/config COMPONENT doc
  FILES_MATCHING PATTERN *.bt PATTERN README.md)
install(FILES docs/GUIDE.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT doc)
install(DIRECTORY config/monitoring DESTINATION ${CMAKE_INSTALL_DOCDIR}/config COMPONENT doc
  FILES_MATCHING PATTERN *.yml PATTERN *.json PATTERN *.md)
install(FILES tests/bench/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/bench COMPONENT doc)
install(DIRECTORY tests/bench/plots DESTINATION ${CMAKE_INSTALL_DOCDIR}/tests/bench COMPONENT doc
  FILES_MATCHING PATTERN *.csv PATTERN *.svg)
# rmemfs@.service names it.
install(FILES config/example.env DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT client)

# The pages name /etc/rmemfs and /usr/share/doc/rmemfs.
function(install_page page component)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${page})
  cmake_path(GET page FILENAME name)
  cmake_path(GET page EXTENSION LAST_ONLY section)
  string(SUBSTRING ${section} 1 1 section)
  file(READ ${page} text)
  string(REPLACE "/etc/rmemfs" "${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs" text "${text}")
  string(REPLACE "/usr/share/doc/rmemfs" "${CMAKE_INSTALL_FULL_DOCDIR}" text "${text}")
  file(WRITE ${CMAKE_BINARY_DIR}/installed/${name} "${text}")
  install(FILES ${CMAKE_BINARY_DIR}/installed/${name}
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endfunction()
install_page(daemon/rmemfs.8 client)
install_page(daemon/rmemfsctl.8 client)
install_page(daemon/rmemfs-metrics.8 client)
install_page(config/rmemfs.conf.5 client)
install_page(docs/rmemfs-guide.7 client)
install_page(server/rmemfs-server.8 server)

# Never replace an administrator's file: install an example only where there is none.
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs/mounts COMPONENT client)
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs/exports.d COMPONENT server)
# Root's until systemd-tmpfiles gives it the group rmemfs, which systemd-sysusers makes.
install(DIRECTORY DESTINATION ${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs/keys COMPONENT client
  DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE)
foreach(component server client)
  set(file ${component}.conf)
  install(CODE "
    set(file ${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs/${file})
    if(EXISTS \"\$ENV{DESTDIR}\${file}\" OR IS_SYMLINK \"\$ENV{DESTDIR}\${file}\")
      message(STATUS \"Kept: \$ENV{DESTDIR}\${file}\")
    else()
      file(INSTALL ${CMAKE_SOURCE_DIR}/config/${file} DESTINATION \"${CMAKE_INSTALL_FULL_SYSCONFDIR}/rmemfs\")
    endif()"
    COMPONENT ${component})
endforeach()

install(CODE "
  if(NOT CMAKE_INSTALL_PREFIX MATCHES \"^/(usr)?$\")
    message(NOTICE \"mount(8) finds helpers in /sbin only. For mount -t rmemfs and fstab:\\n\"
      \"  ln -s ${CMAKE_INSTALL_FULL_SBINDIR}/rmemfs /sbin/mount.rmemfs\\n\"
      \"  ln -s ${CMAKE_INSTALL_FULL_SBINDIR}/rmemfs /sbin/mount.fuse.rmemfs\")
  endif()"
  COMPONENT client)
